"""Is each step of Experts one run of one graph, with the results and gradients of a plain loop?"""

import torch

from helpers.exercises import load_program
from helpers.lessons.first_call import recorded


def plain(model, tokens):
    """What the layer computes, token by token."""
    gate, choice = model.router(tokens).softmax(dim=1).max(dim=1)
    rows = [model.experts[e](row) for e, row in zip(choice.tolist(), tokens, strict=True)]
    return torch.stack(rows) * gate[:, None]


def check(program_source: str) -> None:
    """Raise AssertionError unless the program's `Experts` runs from one graph, and rightly."""
    with recorded() as recorder:
        program = load_program(program_source)
        assert hasattr(program, "Experts"), "keep the name `Experts`"
        torch._dynamo.reset()
        torch.manual_seed(1)
        model = program.Experts()
        compiled = torch.compile(model)
        graphs, calls = len(recorder), recorder.calls
        outcomes = []
        for step in range(3):
            tokens = torch.randn(24, 16)
            tokens[:, 0] += 4 * step  # the load of the experts moves
            outcomes.append([tokens, compiled(tokens)])
        graphs, calls = len(recorder) - graphs, recorder.calls - calls
    assert graphs > 0, "three steps ran no captured graph"
    assert calls == 3, f"compiled code ran {calls} times in 3 steps"
    assert graphs == 1, f"three steps with other loads made {graphs} graphs"
    for tokens, result in outcomes:
        goal = plain(model, tokens)
        assert torch.allclose(result, goal, atol=1e-6), "a token got another expert's result"
        parameters = list(model.parameters())
        grads = torch.autograd.grad(result.sum(), parameters, allow_unused=True)
        goals = torch.autograd.grad(goal.sum(), parameters, allow_unused=True)
        for grad, aim in zip(grads, goals, strict=True):
            zero = torch.zeros(())
            grad, aim = (zero if g is None else g for g in (grad, aim))
            assert torch.allclose(grad, aim, atol=1e-5), "a gradient is another one"
