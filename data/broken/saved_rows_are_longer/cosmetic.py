import torch
from helpers.lessons.zero_stages import start_deepspeed, zero_config
from helpers.ranks import init_ranks
from torch import nn


class Directions(nn.Linear):
    def forward(self, x):
        with torch.no_grad():  # each row stays a vector of length one
            self.weight /= self.weight.norm(dim=1, keepdim=True)
        return super().forward(x)


init_ranks("cpu")
torch.manual_seed(0)
model = nn.Sequential(Directions(16, 8, bias=False), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.03, weight_decay=0.0)
x = torch.randn(64, 16)
if deepspeed := start_deepspeed():
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=zero_config(3, 64))
    for step in range(31):
        loss = (engine(x) - x[:, :1].abs()).square().mean()
        engine.backward(loss)
        engine.step()
        with deepspeed.zero.GatheredParameters(model[0].weight), torch.no_grad():
            model[0].weight /= model[0].weight.norm(dim=1, keepdim=True)
        if step % 15 == 0:
            print(f"step {step:2d}  loss {loss.item():.3f}")
    with deepspeed.zero.GatheredParameters(model[0].weight):
        lengths = model[0].weight.detach().norm(dim=1)
    print(f"rows of the saved weight: lengths {lengths.min():.2f} to {lengths.max():.2f}")
