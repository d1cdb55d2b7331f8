import datetime

import torch
import torch.distributed as dist
from helpers.lessons.zero_stages import start_deepspeed, why_no_deepspeed, zero_config
from helpers.ranks import init_ranks
from torch import nn

rank, world_size, device = init_ranks("cpu")
torch.manual_seed(0)
model, lengths = nn.Linear(8, 8), []
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
deepspeed = start_deepspeed()
if deepspeed is None:
    raise RuntimeError(why_no_deepspeed())
engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=zero_config(3, 4))
for step in range(3):
    engine.backward(engine(torch.ones(4, 8)).square().mean())
    engine.step()
patience = datetime.timedelta(seconds=4)  # in place of gloo's half an hour
dist.distributed_c10d._set_pg_timeout(patience, dist.group.WORLD)
with deepspeed.zero.GatheredParameters(model.weight):  # a collective: all ranks enter
    length = model.weight.norm().item()
if rank == 0:  # one rank writes the log
    lengths.append(length)
    print(f"length of the weight {lengths[-1]:.4f}")
dist.monitored_barrier(timeout=5 * patience)  # rank 0 ends first
