import logging

import torch
from helpers import GraphRecorder
from torch import nn

log = logging.getLogger("levels")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(16, 16)

    def forward(self, x):
        y = self.linear(x)
        log.debug("level %s", y.abs().mean())
        return x + torch.relu(y)


class Model(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(depth))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def step(model, batch):
    return model(batch).square().mean()


for depth in (2, 4, 8):
    recorder = GraphRecorder()
    step(torch.compile(Model(depth), backend=recorder), torch.ones(4, 16))
    print(f"{depth} layers: compiled code ran {recorder.calls} times in a step")
