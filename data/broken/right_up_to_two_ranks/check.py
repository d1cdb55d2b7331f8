"""Does `all_reduce` leave the sum on every rank, for every world size?"""


def check(program_source: str) -> None:
    """Raise AssertionError unless the program's `all_reduce` is exact on 1 to 9 ranks."""
    names = {"__name__": "program"}
    exec(compile(program_source, "program.py", "exec"), names)
    for p in range(1, 10):
        tensors = [[(3 + rank) * (7 + chunk) for chunk in range(p)] for rank in range(p)]
        goal = [sum(tensor[chunk] for tensor in tensors) for chunk in range(p)]
        names["all_reduce"](tensors)
        right = sum(tensor == goal for tensor in tensors)
        assert right == p, f"{right} of {p} ranks hold the sum"
