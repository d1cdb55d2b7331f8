import torch
from torch.compiler import nested_compile_region


class Schedule:
    def __init__(self, scale):
        self.scale = scale


schedule = Schedule(1.0)


@nested_compile_region  # compiled once, and used for each turn
def layer(x):
    scale = schedule.scale
    return scale * torch.sin(x)


@torch.compile(backend="eager")
def anneal(x):
    global schedule
    turns = []
    for scale in (1.0, 2.0, 4.0):
        schedule = Schedule(scale)
        turns.append(layer(x))
    return torch.stack(turns)


print("sine of 1, times 1, 2 and 4:", anneal(torch.ones(())).tolist())
