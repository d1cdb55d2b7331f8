"""Is the program's result eager's, and does it come from compiled code?"""

import torch

from helpers.counting import GraphRecorder
from helpers.exercises import load_program


def check(program_source: str) -> None:
    """Raise AssertionError unless `excess` and `signal` are as in eager mode, and compiled."""
    torch._dynamo.reset()
    recorder = GraphRecorder("aot_eager")  # the backend "eager" would be right by itself
    with torch.compiler.set_stance("default", force_backend=recorder):
        program = load_program(program_source)
    signal, excess = getattr(program, "signal", None), getattr(program, "excess", None)
    assert signal is not None and excess is not None, "keep the names `signal` and `excess`"
    expected = torch.tensor([-1.0, -1.0, -1.0, -1.0, -4.0, -4.5])
    assert torch.equal(excess, expected), f"eager gives {expected.tolist()}"
    damped = torch.tensor([0, 0.5, 1, 1.5, 2, 2.5, 6, 7])
    assert torch.equal(signal, damped), "`damp` must still halve the signal in place"
    assert recorder.calls >= 2, "the warm-up and the call must run compiled code"
