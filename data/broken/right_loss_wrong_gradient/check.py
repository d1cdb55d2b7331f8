"""Are the gradients right, and is memory still reused where it may be?"""

import torch

from helpers.exercises import load_program
from helpers.lessons.compile_backends import Levels, interpret, training_backend


def gradient(function, x, w):
    loss = function(x, w)
    return [loss.detach(), *torch.autograd.grad(loss, w)]


def views(x, w):
    h = x @ w
    return h.t().cos().sum() + h.exp().sum()


def view_of_another(x, w):
    h = x @ w
    return h.cos().sum() + h.view(-1).exp().sum()


def chain(x, w):
    return (x @ w).tanh().exp().sum()


def check(program_source: str) -> None:
    """Raise AssertionError unless `reuse` keeps gradients right, and still reuses memory."""
    program = load_program(program_source)
    reuse, energy = getattr(program, "reuse", None), getattr(program, "energy", None)
    assert callable(reuse) and callable(energy), "keep the names `reuse` and `energy`"
    inputs = torch.randn(4, 6), torch.randn(6, 5, requires_grad=True)
    backend = training_backend(lambda graph, example_inputs: interpret(reuse(graph)))
    for function in (energy, views, view_of_another, chain):
        torch._dynamo.reset()
        pairs = zip(
            gradient(function, *inputs),
            gradient(torch.compile(function, backend=backend), *inputs),
            strict=True,
        )
        for what, (a, b) in zip(("loss", "gradient"), pairs, strict=True):
            assert torch.equal(a, b), f"the {what} of {function.__name__} differs from eager's"
    levels = Levels()
    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(chain, backend=levels)(*inputs)
    targets = [str(n.target) for n in reuse(levels.graphs["inference"]).graph.nodes]
    assert "aten.tanh_.default" in targets, "a value that is alone and dies may be written into"
