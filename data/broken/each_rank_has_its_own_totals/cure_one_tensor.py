import torch
import torch.distributed as dist
from helpers.ranks import init_ranks

rank, world_size, device = init_ranks("cpu")
seen = (["cat", "cat", "dog", "cat"], ["dog", "dog", "cat", "dog", "dog"])[rank]

classes = ("cat", "dog")
counts = torch.tensor([seen.count(label) for label in classes])
dist.all_reduce(counts)  # one call, on whatever a rank saw
totals = dict(zip(classes, counts.tolist(), strict=True))
print("all ranks saw", totals)
