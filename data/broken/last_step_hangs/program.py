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

samples = torch.arange(13.0).sin().unsqueeze(1).expand(13, 4)
steps = 0
for x in samples[rank::world_size].split(2):  # every second sample, in batches of two
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
    steps += 1
    print(f"step {steps} done")
dist.barrier(group)
