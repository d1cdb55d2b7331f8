"""Do both ranks hold one sharded model, trained on both ranks' data?"""

import torch

from helpers.exercises import run_on_ranks

PROBE = """
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor

for module in model.modules():
    if isinstance(module, FSDPModule):
        module.reshard()  # a root stays gathered after a forward pass
sharded = sum(isinstance(p, DTensor) for p in model.parameters())
whole = {
    name: (p.full_tensor() if isinstance(p, DTensor) else p).detach()
    for name, p in model.named_parameters()
}
"""


def check(program_source: str) -> None:
    """Raise AssertionError unless weights agree, data differ, blocks are sharded, the loss fell."""
    pulled = run_on_ranks(
        program_source + PROBE, pull=("sharded", "whole", "x", "losses"), timeout=180
    )
    assert min(pulled["sharded"]) >= 12, "the blocks must stay sharded"
    first, second = pulled["whole"]
    apart = [name for name in first if not torch.equal(first[name], second[name])]
    assert not apart, f"the ranks hold different {', '.join(apart)}"
    one, other = pulled["x"]
    assert not torch.equal(one, other), "each rank must train on data of its own"
    assert all(losses[-1] < losses[0] - 0.5 for losses in pulled["losses"]), "the loss must fall"
