"""Does a unit that dropout set to zero get no gradient, in a compiled step with dropout?"""

import torch

from helpers import GraphRecorder
from helpers.exercises import load_program


def check(program_source: str) -> None:
    """Raise AssertionError unless the program's compiled step drops units and gives them nothing."""
    recorder = GraphRecorder("inductor")
    torch._dynamo.reset()
    with (
        torch._functorch.config.patch(activation_memory_budget=1.0),
        torch.compiler.set_stance("default", force_backend=recorder),
    ):
        program = load_program(program_source)
        step, shift = getattr(program, "step", None), getattr(program, "shift", None)
        assert callable(step) and shift is not None, "keep the names `step` and `shift`"
        calls = recorder.calls
        wrong = step()
        assert recorder.calls > calls, "step() ran no captured graph"
        still = int((shift.grad == 0).sum())
    assert not wrong.any(), f"{int(wrong.sum())} dropped units have a gradient"
    assert 1_000 < still < 3_100, f"{still} of 4,096 gradients are zero: half of the units drop out"
