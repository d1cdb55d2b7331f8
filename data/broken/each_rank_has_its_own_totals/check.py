"""Does each rank know how many of each class all ranks saw together?"""

from helpers.exercises import run_on_ranks


def check(program_source: str) -> None:
    """Raise AssertionError unless every rank has the true totals of what the ranks saw."""
    pulled = run_on_ranks(program_source, pull=("seen", "totals"), timeout=120)
    assert [sorted(seen) for seen in pulled["seen"]] == [
        ["cat", "cat", "cat", "dog"],
        ["cat", "dog", "dog", "dog", "dog"],
    ], "keep what the ranks saw"
    for rank, totals in enumerate(pulled["totals"]):
        assert totals == {"cat": 4, "dog": 5}, f"rank {rank} says {totals}; it is 4 cats, 5 dogs"
