import torch
from torch import nn
from torch.nn import functional as F


class Regressor(nn.Sequential):
    def loss(self, x, target):
        return F.mse_loss(self(x), target)


torch.manual_seed(0)
batch = torch.randn(64, 256), torch.randn(64, 256)
model = Regressor(nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 256)).train()
model = torch.compile(model, mode="max-autotune")


def step(batch):
    x, target = batch
    loss = model.loss(x, target)
    loss.backward()
    return loss


print(f"loss {step(batch).item():.4f}")
