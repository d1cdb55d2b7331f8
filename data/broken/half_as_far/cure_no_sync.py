import torch
import torch.distributed as dist
from helpers.ranks import init_ranks
from torch import nn
from torch.nn.parallel import DistributedDataParallel

rank, world_size, device = init_ranks("cpu")
torch.manual_seed(0)
x = torch.randn(64, 8)
y = x.sum(1, keepdim=True)
mine = slice(rank, None, world_size)  # each rank its part of one batch


def agree(optimizer, *arguments):
    """Before each step: all ranks step by one gradient."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            dist.all_reduce(parameter.grad)


def backward():
    """This rank's part of the mean square over the batch; `agree` adds the parts."""
    with model.no_sync():
        loss = (model(x[mine]) - y[mine]).square().sum() / len(x)
        loss.backward()


model = DistributedDataParallel(nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
optimizer.register_step_pre_hook(agree)
for step in range(20):
    optimizer.zero_grad()
    backward()
    optimizer.step()
with torch.no_grad():
    error = (model.module(x) - y).square().mean().item()
print(f"mean square on all samples: {error:.3f}")
