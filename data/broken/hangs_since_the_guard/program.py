from datetime import timedelta

import torch
import torch.distributed as dist
from helpers.ranks import init_ranks
from torch import nn
from torch.nn.parallel import DistributedDataParallel

rank, world_size, device = init_ranks("cpu")
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
group = dist.new_group(timeout=timedelta(seconds=3))  # gloo would wait 30 minutes
model = DistributedDataParallel(net, process_group=group)

batches = torch.arange(20.0).sin().reshape(5, 4).clone()  # five batches on each rank
if rank == 1:
    batches[1, 2] = float("nan")
steps = 0
for x in batches:
    optimizer.zero_grad()
    loss = model(x).square().mean()
    if not loss.isfinite():
        print("a bad batch was left out")
        continue
    loss.backward()
    optimizer.step()
    steps += 1
print(f"{steps} steps")
dist.barrier(group)
