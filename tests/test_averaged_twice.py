"""Following a gradient's length, in a group of one rank."""

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from helpers.lessons.averaged_twice import follow


class Parts(nn.Module):
    """A layer that is used, one that is frozen and one that is not used."""

    def __init__(self):
        super().__init__()
        self.used, self.frozen, self.unused = (nn.Linear(3, 3) for _ in range(3))
        self.frozen.requires_grad_(False)

    def forward(self, x):
        return self.frozen(self.used(x))


@pytest.fixture
def ddp():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield DistributedDataParallel(Parts(), find_unused_parameters=True)
    dist.destroy_process_group()


def halve_one_weight(optimizer, *arguments):
    optimizer.param_groups[0]["params"][0].grad[0] /= 2


def test_a_weight_that_is_halved_is_no_factor_of_all(ddp):
    optimizer = torch.optim.SGD([p for p in ddp.parameters() if p.requires_grad], lr=0.1)
    places = []
    for _ in range(2):
        places.append(follow(ddp, optimizer, lambda: ddp(torch.ones(2, 3)).sum().backward()))
        optimizer.register_step_pre_hook(halve_one_weight)
    whole, halved = places
    assert whole == {"after backward": (1, 0), "in the step": (1, 0)}
    assert halved["after backward"] == (1, 0)
    factor, rest = halved["in the step"]
    assert 0.5 < factor < 1 and rest > 0.01


def test_a_step_that_fails_leaves_no_hook(ddp):
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)

    def fails(*arguments):
        raise RuntimeError("here")

    optimizer.register_step_pre_hook(fails)
    with pytest.raises(RuntimeError, match="here"):
        follow(ddp, optimizer, lambda: ddp(torch.ones(2, 3)).sum().backward())
    assert not optimizer._optimizer_step_post_hooks
