import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

torch.manual_seed(0)
batch = torch.randn(64, 256)
model = nn.Sequential(nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 256))


def eager_step(batch):
    return model(batch).square().mean()


with FlopCounterMode(display=False) as counter:
    eager_step(batch)
step = torch.compile(eager_step)
flops = counter.get_total_flops()
print(f"{flops:,} FLOPs; loss {step(batch).item():.4f}")
