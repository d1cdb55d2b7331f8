"""Do both ranks finish, after equally many steps, with one model that saw nearly all samples?"""

from helpers.exercises import run_on_ranks

PROBE = """
weights = [p.detach() for p in model.module.parameters()]
"""


def check(program_source: str) -> None:
    """Raise AssertionError unless both ranks end in time, with equal weights and most samples."""
    pulled = run_on_ranks(program_source + PROBE, pull=("weights", "steps"), timeout=120)
    first, second = pulled["weights"]
    assert all(a.equal(b) for a, b in zip(first, second, strict=True)), "two models at the end"
    assert min(pulled["steps"]) >= 3, f"steps {pulled['steps']}: too many samples are left out"
