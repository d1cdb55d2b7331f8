import torch
import torch.distributed as dist
from helpers.lessons.small_gpt import GPT, Config, batch, train_step
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)  # one rank will do
config = Config(layers=2, width=32, heads=2, context=32)
model = GPT(config).to(torch.bfloat16)  # half the memory, half the bytes
mixed = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
mesh = init_device_mesh("cpu", (1,))
for part in (*model.blocks, model):
    fully_shard(part, mesh=mesh, mp_policy=mixed)
computed = set()
model.blocks[0].register_forward_hook(lambda block, inputs, output: computed.add(output.dtype))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
losses = []
for step in range(40):
    losses.append(train_step(model, optimizer, *batch(step, size=8, context=32)).item())
norms = [w for name, w in model.named_parameters() if "norm" in name and name.endswith("weight")]
moved = sum((weight.full_tensor() != 1).sum().item() for weight in norms)
dist.destroy_process_group()
print(f"computed in {computed}; loss {losses[0]:.3f}, {losses[-1]:.3f}")
print(f"norm weights that left 1.0: {moved} of {sum(weight.numel() for weight in norms)}")
