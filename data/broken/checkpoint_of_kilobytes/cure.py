import os
import tempfile

import torch
from helpers.lessons.zero_stages import start_deepspeed, zero_config
from helpers.ranks import init_ranks
from torch import nn

CONFIG = zero_config(3, 8, stage3_gather_16bit_weights_on_model_save=True)
rank, world_size, device = init_ranks("cpu")
model = nn.Sequential(*[nn.Linear(256, 256) for _ in range(4)])
optimizer = torch.optim.AdamW(model.parameters())
if deepspeed := start_deepspeed():
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=CONFIG)
    engine.backward(engine(torch.ones(8, 256)).square().mean())
    engine.step()
    path = os.path.join(tempfile.mkdtemp(), "model.pt")
    assert engine.save_16bit_model(os.path.dirname(path), "model.pt")  # on all ranks
    print(f"{4 * 256 * 257 * 4 // 1024} KiB of weights, {os.path.getsize(path) // 1024} KiB saved")
