"""Does each rank of the restored model hold what this rank saved?"""

from helpers.exercises import run_on_ranks

PROBE = """
for part in (model, restored):
    part.reshard()  # the forward pass leaves the root whole
pairs = list(zip(model.parameters(), restored.parameters(), strict=True))
same = [torch.equal(a.to_local(), b.to_local()) for a, b in pairs]
apart = not any(a is b for a, b in pairs)
"""


def check(program_source: str) -> None:
    """Raise AssertionError unless every shard came back and the loss with it."""
    pulled = run_on_ranks(program_source + PROBE, pull=("same", "apart", "before", "after"), timeout=110)
    for rank, same in enumerate(pulled["same"]):
        assert all(same), f"rank {rank}: {sum(same)} of {len(same)} shards are those it saved"
    assert all(pulled["apart"]), "the weights must go through the disk"
    assert pulled["before"] == pulled["after"], "the losses before and after differ"
    assert max(pulled["before"]) < 4.5, f"the model no longer trains: {pulled['before']}"
