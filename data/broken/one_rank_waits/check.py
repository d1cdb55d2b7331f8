"""Does rank 0 know the length of the whole weight after three steps, and do both ranks end?"""

import torch

from helpers.exercises import run_on_ranks

PROBE = """
stage, steps = engine.zero_optimization_stage(), engine.global_steps
"""


def check(program_source: str) -> None:
    """Raise AssertionError unless rank 0 logged the length that one process finds."""
    pulled = run_on_ranks(program_source + PROBE, pull=("lengths", "stage", "steps"), timeout=120)
    assert pulled["stage"] == [3, 3] and pulled["steps"] == [3, 3], "keep three steps of ZeRO-3"
    found, goal = pulled["lengths"][0], length_in_one_process()
    assert len(found) == 1, f"rank 0 logged {len(found)} lengths, not one"
    assert abs(found[0] - goal) < 1e-4, (
        f"length {found[0]:.4f}, but the whole weight has {goal:.4f}"
    )


def length_in_one_process() -> float:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(4, 8)).square().mean().backward()
        optimizer.step()
    return model.weight.norm().item()
