import torch
from torch import nn
from torch.nn import functional as F

torch._functorch.config.activation_memory_budget = 0.3  # the batch did not fit


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(64, 64, bias=False)
        self.down = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64))

    def forward(self, x, shift):
        hidden = F.dropout(self.up(x) + shift, 0.5)
        return hidden, self.down(hidden.sin()).square().mean()


torch.manual_seed(0)
layer = torch.compile(Layer())
x, shift = torch.randn(64, 64), torch.zeros(64, 64, requires_grad=True)


def step():
    shift.grad = None
    hidden, loss = layer(x, shift)
    loss.backward()
    return (hidden == 0) & (shift.grad != 0)


print(f"{step().sum()} dropped units have a gradient")
