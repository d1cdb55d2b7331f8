from datetime import timedelta

import torch
import torch.distributed as dist
from helpers.ranks import init_ranks
from torch import nn
from torch.nn.parallel import DistributedDataParallel

rank, world_size, device = init_ranks("cpu")
net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
group = dist.new_group(timeout=timedelta(seconds=3))  # gloo would wait 30 minutes
model = DistributedDataParallel(net, process_group=group)
dice = torch.Generator().manual_seed(rank)
for _ in range(3):
    model(torch.randn(16, 4, generator=dice)).square().mean().backward()
    optimizer.step()

model.eval()
part = torch.ones(8, 4)[rank::world_size]  # every rank validates a part
with torch.no_grad():
    errors = model(part).square()
sums = torch.tensor([errors.sum(), errors.numel()])
dist.all_reduce(sums, group=group)
score = (sums[0] / sums[1]).item()
if rank == 0:
    print(f"validation {score:.3f}")
model.train()
dist.barrier(group)
