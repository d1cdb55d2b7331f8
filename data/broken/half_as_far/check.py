"""Do two ranks take the steps that one rank takes with the whole batch?"""

from helpers.exercises import run_on_ranks

PROBE = """
weights = torch.cat([p.detach().flatten() for p in model.parameters()])
rate, seen = optimizer.param_groups[0]["lr"], len(x[mine])
"""


def check(program_source: str) -> None:
    """Raise AssertionError unless the weights are those of one rank, at the same learning rate."""
    ends = []
    for ranks in (1, 2):
        pulled = run_on_ranks(program_source + PROBE, ranks, ("weights", "rate", "seen"), 120)
        assert set(pulled["rate"]) == {0.05}, "keep the learning rate: another batch will come"
        assert sum(pulled["seen"]) == 64, "the ranks must share one batch of 64 samples"
        ends += pulled["weights"]
    alone, first, second = ends
    assert first.equal(second), "the two ranks differ"
    apart = ((first - alone).norm() / alone.norm()).item()
    assert apart < 1e-4, f"the weights of two ranks end {apart:.0%} away from those of one"
