"""Do four ranks on two machines learn from the samples of all four?"""

import torch
from torch import nn

from helpers.exercises import run_on_ranks

PROBE = """
model.reshard()  # a root stays whole after a forward pass
weights = torch.cat([p.full_tensor().detach().flatten() for p in model.parameters()])
halves = [p.to_local().numel() < p.numel() for p in model.parameters()]
"""


def check(program_source: str) -> None:
    """Raise AssertionError unless each rank ends where one process ends that has all samples."""
    pulled = run_on_ranks(program_source + PROBE, 4, ("weights", "halves", "x", "y"), timeout=180)
    assert all(map(all, pulled["halves"])), "the model must stay sharded"
    truth = alone(torch.cat(pulled["x"]), torch.cat(pulled["y"]))
    for rank, weights in enumerate(pulled["weights"]):
        apart = ((weights - truth).norm() / truth.norm()).item()
        said = f"rank {rank} ends {apart:.0%} away from a run on the samples of all four ranks"
        assert apart < 1e-4, said


def alone(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The weights after the program's hundred steps, in one process without any sharding."""
    torch.manual_seed(0)
    model = nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    for _ in range(100):
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        optimizer.step()
    return torch.cat([p.detach().flatten() for p in model.parameters()])
