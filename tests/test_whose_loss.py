"""Asking whose loss moves a weight, in a group of one rank: the answer, and what is left behind."""

import copy

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer

from helpers.lessons.whose_loss import piece, sharded, shards_only, small, step_and_back, whose_loss


class Net(nn.Module):
    """Buffers, dropout, a layer without effect, and one that no optimizer will hold."""

    def __init__(self):
        super().__init__()
        self.used, self.idle, self.outside = (nn.Linear(6, 6) for _ in range(3))
        self.norm, self.drop = nn.BatchNorm1d(6), nn.Dropout(0.5)

    def forward(self, x):
        return self.outside(self.norm(self.drop(self.used(x))) + 0 * self.idle(x))


@pytest.fixture
def group():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def job(kind, **options):
    """A model that has taken three steps, its optimizer and its loss."""
    torch.manual_seed(0)
    model, x = Net(), torch.randn(8, 6)
    held = [*model.used.parameters(), *model.idle.parameters(), *model.norm.parameters()]
    optimizer = kind(held, lr=0.1, weight_decay=0.1, **options)

    def loss():
        return model(x).square().mean()

    for _ in range(3):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
    return model, optimizer, loss


KINDS = [(torch.optim.AdamW, {}), (torch.optim.SGD, {"momentum": 0.9})]
each_optimizer = pytest.mark.parametrize(("kind", "options"), KINDS, ids=["AdamW", "SGD"])


@each_optimizer
def test_decay_and_momentum_are_nobodys_and_a_tensor_that_is_not_held_is_not_moved(
    group, kind, options
):
    moved = whose_loss(*job(kind, **options))
    assert moved.pop("used.bias") == moved.pop("used.weight") == (0,)
    assert moved.pop("norm.weight") == moved.pop("norm.bias") == (0,)
    assert set(moved.values()) == {()}


@each_optimizer
def test_nothing_is_left_behind(group, kind, options):
    model, optimizer, loss = job(kind, **options)
    weights, state = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    dice = torch.get_rng_state()
    whose_loss(model, optimizer, loss)
    assert all(now.equal(weights[name]) for name, now in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), dice)
    after = optimizer.state_dict()["state"]
    assert after.keys() == state["state"].keys()
    for number, kept in state["state"].items():
        assert all(after[number][key].equal(value) for key, value in kept.items())
    assert all(weight.grad is None for weight in model.parameters())


def test_an_empty_state_is_empty_again(group):
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters())
    whose_loss(model, optimizer, lambda: model(torch.ones(4, 6)).sum())
    assert not optimizer.state


def test_gradients_outside_the_optimizer_do_not_add_up(group):
    model, optimizer, loss = job(torch.optim.SGD)
    seen = []
    model.outside.weight.register_post_accumulate_grad_hook(lambda w: seen.append(w.grad.clone()))
    for _ in range(2):
        step_and_back(model, optimizer, loss, 1.0)
    assert seen[0].equal(seen[1])


@pytest.mark.parametrize("keep", [False, True], ids=["resharded", "kept whole after backward"])
def test_fsdp2_that_is_still_gathered(group, keep):
    mesh = init_device_mesh("cpu", (1,))
    model = sharded(small(), mesh=mesh)
    model.set_reshard_after_backward(not keep)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.arange(256).view(8, 32)

    def loss():
        return model(x).logsumexp(-1).mean() - model(x).mean()

    before = [piece(weight).clone() for weight in model.parameters()]
    with torch.no_grad():
        model(x)
    moved = whose_loss(model, optimizer, loss)
    assert {ranks for name, ranks in moved.items() if "qkv.bias" not in name} == {(0,)}
    shards_only(model)
    after = [piece(weight) for weight in model.parameters()]
    assert all(map(torch.equal, before, after))


def test_a_parameter_of_which_this_rank_holds_nothing_is_left_out(group):
    model = fully_shard(nn.Linear(3, 3), mesh=init_device_mesh("cpu", (1,)))
    model.bias = nn.Parameter(torch.empty(0))
    optimizer = torch.optim.SGD([model.weight], lr=0.1)
    moved = whose_loss(model, optimizer, lambda: (model.weight.to_local() * 2).sum())
    assert set(moved) == {"weight"}


def test_a_question_that_fails_leaves_the_job_as_it_was(group):
    model, optimizer, loss = job(torch.optim.AdamW)
    before = copy.deepcopy(model.state_dict())

    def fails():
        loss()  # the buffers have moved
        raise RuntimeError("here")

    with pytest.raises(RuntimeError, match="here"):
        whose_loss(model, optimizer, fails)
    assert all(now.equal(before[name]) for name, now in model.state_dict().items())


def test_an_optimizer_around_another_is_refused(group):
    model = Net()
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW)
    with pytest.raises(ValueError, match="ZeroRedundancyOptimizer keeps its state in"):
        whose_loss(model, optimizer, lambda: model(torch.ones(4, 6)).sum())
