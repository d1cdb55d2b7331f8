import io
import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self, order):
        super().__init__()
        for name in order:  # in any order
            setattr(self, name, nn.Linear(32, 32, bias=False))
        dice = torch.Generator().manual_seed(0)
        for name in ("up", "down"):
            nn.init.normal_(getattr(self, name).weight, std=0.2, generator=dice)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


def start(order):
    model = Net(order)
    return model, torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.99))


def train(model, optimizer, steps):
    losses = []
    for step in steps:
        x = torch.randn(48, 32, generator=torch.Generator().manual_seed(step))
        loss = F.mse_loss(model(x), x.flip(1) / 10)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


model, optimizer = start(("up", "down"))
train(model, optimizer, range(60))
file = io.BytesIO()
torch.save([model.state_dict(), optimizer.state_dict()], file)
file.seek(0)
refactored, its_optimizer = start(("down", "up"))
weights, state = torch.load(file)
refactored.load_state_dict(weights)
its_optimizer.load_state_dict(state)
old, new = train(model, optimizer, range(60, 80)), train(refactored, its_optimizer, range(60, 80))
for step in (0, 1, 4, 9, 19):
    print(f"step {60 + step}  loss {old[step]:.5f}, refactored {new[step]:.5f}")
