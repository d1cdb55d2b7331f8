import torch
import torch.distributed as dist
from helpers.lessons.small_gpt import GPT, Config, batch, loss_fn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


def train(evaluate):
    """Losses of 12 steps; `evaluate` also looks at other text after every third backward pass."""
    config = Config(layers=2, width=32, heads=2, context=32)
    model, mesh = GPT(config), init_device_mesh("cpu", (1,))
    for part in model.blocks:
        fully_shard(part, mesh=mesh)
    fully_shard(model, mesh=mesh, reshard_after_forward=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for step in range(12):
        x, y = batch(step, size=8, context=config.context)
        loss = loss_fn(model(x), y)
        loss.backward()
        if evaluate and step % 3 == 0:
            x, y = batch(1000, size=8, context=config.context)
            with torch.no_grad():
                held_out.append(loss_fn(model(x), y).item())
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)  # one rank will do
held_out = []
quiet, watched = train(evaluate=False), train(evaluate=True)
dist.destroy_process_group()
for step in (0, 1, 2, 4):
    print(f"step {step:2d}  loss {quiet[step]:.4f}, evaluated {watched[step]:.4f}")
