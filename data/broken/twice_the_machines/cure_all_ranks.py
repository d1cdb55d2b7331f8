import torch
from helpers.ranks import init_ranks
from torch import nn
from torch.distributed.fsdp import fully_shard

rank, world_size, device = init_ranks("cpu")  # two ranks on each machine
dice = torch.Generator().manual_seed(rank)  # each rank has samples of its own
x = torch.randn(16, 16, generator=dice)
y = x.sum(1, keepdim=True) + torch.randn(16, 4, generator=dice)

torch.manual_seed(0)
model = nn.Linear(16, 4)
fully_shard(model)  # over all ranks
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
for step in range(100):
    optimizer.zero_grad()
    (model(x) - y).square().mean().backward()
    optimizer.step()

new = torch.randn(1000, 16, generator=torch.Generator().manual_seed(1000))
with torch.no_grad():
    error = (model(new) - new.sum(1, keepdim=True)).square().mean().item()
if rank == 0:
    print(f"mean square on new samples: {error:.9f}")
