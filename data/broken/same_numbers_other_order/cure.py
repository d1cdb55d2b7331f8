from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard

import torch
from helpers.ranks import init_ranks

rank, world_size, device = init_ranks()
mesh = DeviceMesh(device.type, list(range(world_size)))  # the order of cards is the launch's
weights = torch.arange(8.0, device=device)
replicated = DTensor.from_local(weights, mesh, [Replicate()])
sharded = replicated.redistribute(placements=[Shard(0)])
kept = sharded.to_local().numel()
saved = sharded.full_tensor()
if rank == 0:
    print("weights", weights.int().tolist())
    print("saved  ", saved.int().tolist())
