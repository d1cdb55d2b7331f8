import torch
from helpers.ranks import init_ranks
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

rank, world_size, device = init_ranks("cpu")


class Twice(nn.Module):
    """One layer, used twice, whose activations are computed again in the backward pass."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Sequential(nn.Linear(8, 8), nn.Tanh())

    def forward(self, x):
        x = checkpoint(self.layer, x, use_reentrant=True)
        return checkpoint(self.layer, x, use_reentrant=True)


model = DistributedDataParallel(Twice(), static_graph=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
dice = torch.Generator().manual_seed(rank)
for step in range(20):
    x = torch.randn(16, 8, generator=dice, requires_grad=True)
    loss = (model(x) - 0.5).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 19 == 0:
        print(f"step {step:2d}  loss {loss.item():.3f}")
