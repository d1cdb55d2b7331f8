import torch
from torch import nn

torch._dynamo.config.recompile_limit = 64


class Block(nn.Module):
    def __init__(self, index):
        super().__init__()
        self.index = index
        self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 32)

    def forward(self, x):
        h = self.down(torch.relu(self.up(x)))
        return x + h / (2 + 2 * self.index) ** 0.5  # deeper blocks add less


torch.manual_seed(0)
blocks = nn.ModuleList(Block(index) for index in range(12))
for block in blocks:
    block.compile()


def step(x):
    for block in blocks:
        x = block(x)
    return x
