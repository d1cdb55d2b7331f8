class CarefulJit(Jit):  # noqa: F821
    """`alike` without the guard: the symbolic graph is taken for size one."""

    def alike(self, shape):
        small = [size < 2 for size in shape]
        return [s for s in super().alike(shape) if [size < 2 for size in s] == small]
