"""Does the monitor hold one value for each step after the first, from compiled steps?"""

import torch

from helpers.exercises import load_program
from helpers.lessons.first_call import recorded


def check(program_source: str) -> None:
    """Raise AssertionError unless `monitor` saw the layer `up` in all steps but the first."""
    with recorded() as recorder:
        program = load_program(program_source)
    for name in ("net", "batches", "monitor"):
        assert hasattr(program, name), f"keep the name `{name}`"
    steps = len(program.batches)
    assert recorder.calls >= steps, f"compiled code ran {recorder.calls} times in {steps} steps"
    found = [torch.as_tensor(value).detach() for value in program.monitor]
    goal = [program.net.up(batch).mean() for batch in program.batches[1:]]  # its hooks run too
    assert len(found) == len(goal), f"{len(found)} values in {len(goal)} steps"
    assert torch.allclose(torch.stack(found), torch.stack(goal), atol=1e-6), "values of other steps"
