import torch
import torch.distributed as dist
from helpers.ranks import init_ranks

rank, world_size, device = init_ranks("cpu")
seen = (["cat", "cat", "dog", "cat"], ["dog", "dog", "cat", "dog", "dog"])[rank]

counts = {}
for label in seen:
    counts[label] = counts.get(label, 0) + 1
totals = {}
for label, count in counts.items():
    total = torch.tensor(count)
    dist.all_reduce(total)
    totals[label] = total.item()
print("all ranks saw", totals)
