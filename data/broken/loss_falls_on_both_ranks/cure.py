import torch
from helpers.ranks import init_ranks
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

rank, world_size, device = init_ranks("cpu")
pretrained = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1000))
pretrained[2] = nn.Linear(64, 7)  # our classes
model = DistributedDataParallel(pretrained)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
dice = torch.Generator().manual_seed(rank)
for step in range(61):
    x = torch.randn(32, 16, generator=dice)
    loss = F.cross_entropy(model(x), x[:, :7].argmax(dim=1))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 30 == 0:
        print(f"step {step:2d}  loss {loss.item():.2f}")
