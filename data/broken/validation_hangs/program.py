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

if rank == 0:  # one rank is enough to validate
    model.eval()
    with torch.no_grad():
        score = model(torch.ones(8, 4)).square().mean().item()
    print(f"validation {score:.3f}")
    model.train()
dist.barrier(group)
