"""Do both ranks hold one sharded model, trained on both ranks' data?"""

import torch

from helpers.exercises import run_on_ranks

PROBE = """
from torch.distributed.tensor import DTensor

sharded = sum(isinstance(p, DTensor) for p in model.parameters())
whole = {
    name: (p.full_tensor() if isinstance(p, DTensor) else p).detach()
    for name, p in model.named_parameters()
}
"""


def check(program_source: str) -> None:
    """Raise AssertionError unless all weights agree, blocks are sharded and the loss fell."""
    pulled = run_on_ranks(program_source + PROBE, pull=("sharded", "whole", "losses"))
    assert min(pulled["sharded"]) >= 24, "the blocks must stay sharded"
    first, second = pulled["whole"]
    apart = [name for name in first if not torch.equal(first[name], second[name])]
    assert not apart, f"the ranks hold different {', '.join(apart)}"
    assert all(losses[-1] < losses[0] - 1 for losses in pulled["losses"]), "the loss must fall"
