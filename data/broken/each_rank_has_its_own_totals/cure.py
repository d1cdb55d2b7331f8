import torch
import torch.distributed as dist
from helpers.ranks import init_ranks

rank, world_size, device = init_ranks("cpu")
seen = (["cat", "cat", "dog", "cat"], ["dog", "dog", "cat", "dog", "dog"])[rank]

counts = {"cat": 0, "dog": 0}  # every class, in one order, also where a rank saw none
for label in seen:
    counts[label] += 1
totals = {}
for label, count in counts.items():
    total = torch.tensor(count)
    dist.all_reduce(total)
    totals[label] = total.item()
print("all ranks saw", totals)
