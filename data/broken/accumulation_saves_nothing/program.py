import torch
from helpers import count_collectives
from helpers.ranks import init_ranks
from torch import nn
from torch.nn.parallel import DistributedDataParallel

MICRO_BATCHES = 4
rank, world_size, device = init_ranks("cpu")
layers = [nn.Linear(64, 64) for _ in range(4)]
model = DistributedDataParallel(nn.Sequential(*layers), bucket_cap_mb=0.03)
dice = torch.Generator().manual_seed(rank)


def backward(micro_batches):
    """Leave the mean gradient of the micro-batches in model."""
    *early, last = micro_batches
    for x in early:
        loss = model(x).square().mean() / MICRO_BATCHES
        with model.no_sync():  # these gradients pile up here
            loss.backward()
    loss = model(last).square().mean() / MICRO_BATCHES
    loss.backward()  # and this one sends the sum


for step in range(3):
    model.zero_grad()
    with count_collectives() as comms:
        backward(torch.randn(MICRO_BATCHES, 8, 64, generator=dice))
    print(f"step {step}: {comms.calls['all_reduce']} all-reduces for {MICRO_BATCHES} micro-batches")
