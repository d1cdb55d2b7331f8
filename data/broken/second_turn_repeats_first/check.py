"""Does each turn of anneal() use its own scale, compiled?"""

import torch

from helpers.exercises import load_program
from helpers.lessons.first_call import recorded


def check(program_source: str) -> None:
    """Raise AssertionError unless compiled `anneal(x)` is sin(x) times 1, 2 and 4."""
    with recorded() as recorder:
        program = load_program(program_source)
        assert hasattr(program, "anneal"), "keep the name `anneal`"
        calls, x = recorder.calls, torch.tensor([0.5, -1.0])
        found = [program.anneal(x) for _ in range(2)]
    assert recorder.calls > calls, "anneal(x) ran no captured graph"
    goal = torch.sin(x) * torch.tensor([[1.0], [2.0], [4.0]])
    for result in found:
        assert torch.allclose(result, goal), (
            f"turns of sin(x): {(result / torch.sin(x))[:, 0].tolist()}"
        )
