import tempfile
from datetime import timedelta
import torch
import torch.distributed as dist
from helpers.lessons.small_gpt import GPT, Config
from helpers.ranks import init_ranks
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard

rank, world_size, device = init_ranks("cpu")
impatient = dist.new_group(timeout=timedelta(seconds=8))
model = GPT(Config(layers=1, width=64, context=32))
model = fully_shard(model, mesh=DeviceMesh.from_group(impatient, "cpu"))
whole = StateDictOptions(full_state_dict=True, cpu_offload=True)
loaded = None
state = get_model_state_dict(model, options=whole)
if rank == 0:  # one copy is enough
    with tempfile.TemporaryDirectory() as folder:
        torch.save(state, folder + "/model.pt")
        loaded = torch.load(folder + "/model.pt")
dist.barrier(impatient)
print(f"rank {rank} goes on")
