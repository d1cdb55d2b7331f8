import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

torch.manual_seed(0)
batch = torch.randn(64, 256)
model = nn.Sequential(nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 256))


@torch.compile
def step(batch):
    return model(batch).square().mean()


with FlopCounterMode(display=False) as counter:
    step(batch)
flops = counter.get_total_flops()
print(f"{flops:,} FLOPs; loss {step(batch).item():.4f}")
