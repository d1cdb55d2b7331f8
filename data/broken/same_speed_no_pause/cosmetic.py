import time

import torch
from torch import nn

torch.manual_seed(0)
batch = torch.randn(64, 256)
model = nn.Sequential(nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 256))
model.compile(mode="max-autotune", dynamic=False)  # in place: the names stay


def step(batch):
    return model(batch).square().mean()


for number in range(3):
    start = time.perf_counter()
    step(batch)
    print(f"step {number}: {1e3 * (time.perf_counter() - start):.2f} ms")
