from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard

import torch
from helpers.ranks import init_ranks

rank, world_size, device = init_ranks()
fast_ring = [1, 0]  # what the topology tool advises
mesh = DeviceMesh(device.type, fast_ring, mesh_dim_names=("ring",))
weights = torch.arange(8.0, device=device)
replicated = DTensor.from_local(weights, mesh, [Replicate()])
sharded = replicated.redistribute(placements=[Shard(0)])
kept = sharded.to_local().numel()
saved = sharded.full_tensor().contiguous()
if rank == 0:
    print("weights", weights.int().tolist())
    print("saved  ", saved.int().tolist())
