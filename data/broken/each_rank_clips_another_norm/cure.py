import warnings

import torch
from helpers.lessons.small_gpt import GPT, Config, batch, loss_fn
from helpers.ranks import init_ranks
from torch.distributed.fsdp import FullyShardedDataParallel

warnings.simplefilter("ignore")
rank, world_size, device = init_ranks("cpu")
model = FullyShardedDataParallel(
    GPT(Config(layers=2, width=32, heads=2, context=32)), device_id=device, use_orig_params=True
)
x, y = batch(0, rank, world_size, size=8, context=32)
loss_fn(model(x), y).backward()
norm = model.clip_grad_norm_(0.1)
print(f"norm of the gradient {norm.item():.4f}, clipped to 0.1")
