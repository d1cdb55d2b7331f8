"""Does compiled turn_around(x), through Inductor, reverse x in place?"""

import torch

from helpers import GraphRecorder
from helpers.exercises import load_program


def check(program_source: str) -> None:
    """Raise AssertionError unless `turn_around(x)` gives x reversed, in x itself."""
    torch._dynamo.reset()
    recorder = GraphRecorder("inductor")
    with torch.compiler.set_stance("default", force_backend=recorder):
        program = load_program(program_source)
        assert hasattr(program, "turn_around"), "keep the name `turn_around`"
        calls, x = recorder.calls, torch.arange(8.0)
        result = program.turn_around(x)
    assert recorder.calls > calls, "turn_around(x) ran no compiled code"
    goal = torch.arange(8.0).flip(0)
    assert torch.equal(result, goal), f"0 to 7 became {result.int().tolist()}"
    assert torch.equal(x, goal), "x itself is not reversed"
