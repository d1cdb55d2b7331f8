import torch
import torch.distributed as dist
from helpers.lessons.small_gpt import GPT, Config, batch, loss_fn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)  # one rank will do
mesh = init_device_mesh("cpu", (1,))
model = GPT(Config(layers=2, width=32, heads=2, context=32))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for part in (*model.blocks, model):
    fully_shard(part, mesh=mesh)
x, y = batch(0, size=8, context=32)
losses = []
for step in range(6):
    optimizer.zero_grad()
    loss = loss_fn(model(x), y)
    loss.backward()
    norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()]).full_tensor()
    optimizer.step()
    losses.append(loss.item())
    print(f"step {step}  loss {losses[-1]:.4f}  norm of the gradient {norm.item():.2f}")
dist.destroy_process_group()
