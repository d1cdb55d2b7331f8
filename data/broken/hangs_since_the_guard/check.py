"""Do both ranks finish, though one met a NaN, with one model, after equally many steps?"""

from helpers.exercises import run_on_ranks

PROBE = """
weights = [p.detach() for p in model.module.parameters()]
bad = batches.isnan().sum().item()
"""


def check(program_source: str) -> None:
    """Raise AssertionError unless both ranks end in time, with equal, finite weights."""
    pulled = run_on_ranks(program_source + PROBE, pull=("weights", "steps", "bad"), timeout=120)
    assert pulled["bad"] == [0, 1], "the bad batch of rank 1 must stay: the next one will come"
    for first, second in zip(*pulled["weights"], strict=True):
        assert first.isfinite().all() and first.equal(second), "weights differ, or are not finite"
    assert pulled["steps"] == [4, 4], f"steps {pulled['steps']}: four batches are good on both ranks"
