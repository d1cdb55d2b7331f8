"""Does step() run compiled code once, whatever the depth, and still log each block's level?"""

import logging
import warnings

import torch

from helpers.exercises import load_program
from helpers.lessons.first_call import recorded

DEPTH = 5


class Levels(logging.Handler):
    """Keeps the numbers that are logged."""

    def __init__(self):
        super().__init__()
        self.found = []

    def emit(self, record):
        self.found += [torch.as_tensor(value).item() for value in record.args or ()]


def check(program_source: str) -> None:
    """Raise AssertionError unless a step is one run of compiled code and DEPTH logged levels."""
    with recorded() as recorder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Dynamo's, of the insides of a logger that speaks
        program = load_program(program_source)
        for name in ("Model", "step", "log"):
            assert hasattr(program, name), f"keep the name `{name}`"
        torch.manual_seed(0)
        model, batch, levels = program.Model(DEPTH), torch.randn(4, 16), Levels()
        program.log.addHandler(levels)
        program.log.setLevel(logging.DEBUG)
        compiled = torch.compile(model)
        try:
            program.step(compiled, batch)
            calls, graphs = recorder.calls, len(recorder)
            levels.found.clear()
            loss = program.step(compiled, batch)
        finally:
            program.log.removeHandler(levels)
            program.log.setLevel(logging.NOTSET)
    runs = recorder.calls - calls
    assert runs == 1, f"in a step of {DEPTH} layers compiled code ran {runs} times"
    assert len(recorder) == graphs, "the second step captured again"
    goal, x = [], batch
    with torch.no_grad():
        for block in model.blocks:
            y = block.linear(x)
            goal.append(y.abs().mean().item())
            x = x + torch.relu(y)
    assert torch.allclose(loss, x.square().mean()), "the loss is another one"
    assert len(levels.found) == DEPTH, f"{len(levels.found)} levels were logged, not {DEPTH}"
    assert torch.allclose(torch.tensor(levels.found), torch.tensor(goal)), "the levels are wrong"
