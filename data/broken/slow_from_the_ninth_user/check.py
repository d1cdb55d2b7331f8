"""Do answers for users never met before run from the graphs that are there?"""

import torch

from helpers.exercises import load_program
from helpers.lessons.first_call import recorded


def check(program_source: str) -> None:
    """Raise AssertionError unless twelve new users are answered from captured graphs, and right."""
    with recorded() as recorder:
        program = load_program(program_source)
        answer, weight = getattr(program, "answer", None), getattr(program, "weight", None)
        assert callable(answer) and weight is not None, "keep the names `answer` and `weight`"
        hidden = torch.linspace(-2, 2, 64).reshape(4, 16)
        for name in ("ann", "trial-ann"):
            answer(hidden, name)
        graphs = len(recorder)
        for number in range(12):
            user = f"{'trial-' * (number % 3 == 0)}user-{number}"
            calls = recorder.calls
            result = answer(hidden, user)
            assert recorder.calls > calls, f"new user number {number + 1} ran no captured graph"
            logits = hidden @ weight
            goal = (logits.clamp(max=1.0) if user.startswith("trial-") else logits).softmax(-1)
            assert torch.allclose(result, goal), f"a wrong answer for {user}"
    ops = [op for i in range(len(recorder)) for op in recorder.ops(i)]
    assert "softmax" in ops and "matmul" in ops, "the answer is not computed in captured graphs"
    new = len(recorder) - graphs
    assert new == 0, f"{new} more graphs for 12 new users"
