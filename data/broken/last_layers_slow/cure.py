import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, index):
        super().__init__()
        self.share = 1 / (2 + 2 * index) ** 0.5  # deeper blocks add less; a float, not an int
        self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 32)

    def forward(self, x):
        h = self.down(torch.relu(self.up(x)))
        return x + h * self.share


torch.manual_seed(0)
blocks = nn.ModuleList(Block(index) for index in range(12))
for block in blocks:
    block.compile()


def step(x):
    for block in blocks:
        x = block(x)
    return x
