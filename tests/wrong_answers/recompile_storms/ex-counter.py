import torch
from torch import nn


class Steady(nn.Module):
    """The factor is a tensor, and the count is still an int on the module."""

    def __init__(self):
        super().__init__()
        self.step = 0

    def forward(self, x):
        self.step = self.step + 1
        return x * torch.tensor(self.step / 10).clamp(max=1.0)
