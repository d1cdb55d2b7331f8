"""The data parallel of part III beyond what its pages prove. About 40 s, most of it three ranks."""

import random
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from helpers import count_collectives
from helpers.exercises import run_on_ranks
from helpers.lessons.data_parallel import Buckets, Replicas, assign_buckets, average
from helpers.lessons.data_parallel_bits import DataParallel

SIZES = st.lists(st.integers(1, 3000), min_size=1, max_size=30)
exact = settings(derandomize=True, deadline=None, max_examples=60)


@exact
@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=12),
    st.lists(st.integers(1, 40), min_size=1, max_size=3),
)
def test_borders_are_those_of_torch(sizes, limits):
    parameters = [torch.zeros(size) for size in sizes]
    theirs, _ = dist._compute_bucket_assignment_by_size(parameters, limits)
    assert assign_buckets(parameters, [limit / 2**20 for limit in limits]) == theirs


@exact
@given(SIZES, st.integers(1, 9000), st.randoms(use_true_random=False))
def test_buckets_leave_full_and_in_order(sizes, limit, dice: random.Random):
    parameters = [nn.Parameter(torch.zeros(size)) for size in sizes]
    assignment, left = assign_buckets(parameters, [limit / 2**20]), []

    def reduce(buffer):
        indices = assignment[len(left)]
        assert set(indices) <= set(taken), "a bucket left before its last gradient came"
        left.append(torch.equal(buffer, torch.cat([parameters[i].grad for i in indices])))

    buckets, taken = Buckets(parameters, assignment, reduce), []
    for index in dice.sample(range(len(sizes)), len(sizes)):
        parameters[index].grad = torch.full_like(parameters[index], index + 1.0)
        taken.append(index)
        buckets.take(index)
        assert buckets.complete == (len(taken) == len(sizes))
    assert left == [True] * len(assignment)


@pytest.mark.parametrize("kind", [Replicas, DataParallel])
def test_gradients_kept_between_steps_stay_views(one_rank, kind):
    model = kind(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)), [0.00005])
    for step in range(3):
        model(torch.ones(1, 4)).sum().backward()
        for index, parameter in enumerate(model.trained):
            assert parameter.grad is model.buckets.views[index], f"step {step}"
        optimizer = torch.optim.SGD(model.parameters())
        optimizer.zero_grad(set_to_none=step > 0)
    assert kind is Replicas or model.rebuilt


def test_rebuilding_keeps_what_was_accumulated(one_rank):
    model = DataParallel(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)), [0.00005])
    model(torch.ones(1, 4)).sum().backward()
    once = [p.grad.clone() for p in model.parameters()]
    model(torch.ones(1, 4)).sum().backward()  # other buckets now, and nothing was zeroed
    assert model.rebuilt
    for gradient, parameter in zip(once, model.parameters(), strict=True):
        assert torch.equal(2 * gradient, parameter.grad)


@pytest.mark.parametrize("kind", [Replicas, DataParallel])
def test_a_backward_pass_that_raised_is_forgotten(one_rank, kind):
    model = kind(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)))

    def fail(gradient):
        raise ValueError("half of the gradients have come")

    handle = model.module[0].register_forward_hook(
        lambda *args: args[2].register_hook(fail) and None
    )
    with pytest.raises(ValueError, match="half"):
        model(torch.ones(1, 4)).sum().backward()
    handle.remove()
    for _ in range(2):
        model.zero_grad()
        with count_collectives() as comms:
            model(torch.ones(1, 4)).sum().backward()
        assert comms.calls["all_reduce"] == 1
        assert sorted(model.order) == [0, 1, 2, 3]


def test_a_missing_gradient_has_a_name(one_rank):
    for kind in (Replicas, DataParallel):
        model = kind(nn.ModuleDict({"a": nn.Linear(2, 1), "b": nn.Linear(2, 1)}))
        for _ in range(2):
            with pytest.raises(RuntimeError, match=r"for b\.weight, b\.bias$"):
                model.before_forward()
                model.module["a"](torch.ones(1, 2)).sum().backward()


def test_momentum_leaves_unused_weights_alone(one_rank):
    """A gradient of zero would not: momentum goes on."""
    model = DataParallel(nn.ModuleList([nn.Linear(2, 1), nn.Linear(2, 1)]), find_unused=True)
    model.module.forward = lambda x, which: model.module[which](x)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for which in (0, 1, 1):
        optimizer.zero_grad()
        before = model.module[1 - which].weight.clone()
        model(torch.ones(1, 2), which).sum().backward()
        optimizer.step()
        assert torch.equal(before, model.module[1 - which].weight)


def test_average_divides_first(monkeypatch):
    sent = []

    def all_reduce(buffer, async_op):
        sent.append(buffer.clone())
        return SimpleNamespace(wait=None)

    monkeypatch.setattr(dist, "get_world_size", lambda: 3)
    monkeypatch.setattr(dist, "all_reduce", all_reduce)
    average(torch.tensor([5.0]))
    assert torch.equal(sent[0], torch.tensor([5.0]) * (1 / 3))


THREE_RANKS = """
import copy

import torch
import torch.distributed as dist
from helpers.lessons.data_parallel_bits import DataParallel
from helpers.lessons.fewer_bytes import join
from helpers.ranks import init_ranks
from torch import nn
from torch.nn.parallel import DistributedDataParallel

rank, world_size, device = init_ranks("cpu")


def net():
    torch.manual_seed(rank)
    return nn.Sequential(nn.Linear(8, 60), nn.BatchNorm1d(60), nn.ReLU(), nn.Linear(60, 7))


def train(model, steps, width=8):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    dice = torch.Generator().manual_seed(rank)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(4, width, generator=dice)).square().sum().backward()
        optimizer.step()


def equal(left, right):
    return all(torch.equal(a, b) for a, b in zip(left, right, strict=True))


ours, theirs = DataParallel(net(), [0.001]), DistributedDataParallel(net(), bucket_cap_mb=0.001)
for model in (ours, theirs):
    train(model, 5)
same = {"parameters": equal(ours.parameters(), theirs.parameters())}
same["buffers"] = equal(ours.buffers(), theirs.buffers())
same["buckets"] = len(ours.buckets.assignment)

ours, theirs = DataParallel(net(), [0.001]), DistributedDataParallel(net(), bucket_cap_mb=0.001)
for model, joined in ((ours, join(ours)), (theirs, theirs.join())):
    with joined:
        train(model, (4, 2, 0)[rank])
same["joined"] = equal(ours.parameters(), theirs.parameters())

torch.manual_seed(0)  # 5 MiB: with default limits several buckets, the first of 1 MiB
wide = nn.Sequential(*[nn.Linear(512, 512) for _ in range(5)])
ours, theirs = DataParallel(wide), DistributedDataParallel(copy.deepcopy(wide))
for model in (ours, theirs):
    train(model, 3, 512)
same["default limits"] = equal(ours.parameters(), theirs.parameters())
same["default buckets"] = len(ours.buckets.assignment)

# Through model.module(x) DDP averages nothing: its forward pass arms the hooks. Ours does.
for name, kind in (("ours", DataParallel), ("DDP", DistributedDataParallel)):
    model = kind(net())
    model.module(torch.full((4, 8), 1.0 + rank)).sum().backward()
    mine = model.module[3].bias.grad + model.module[3].weight.grad.sum()
    first = mine.clone()
    dist.broadcast(first, src=0)
    apart = (mine - first).abs().max()
    dist.all_reduce(apart, op=dist.ReduceOp.MAX)
    same[f"{name}, module(x) averages"] = apart.item() == 0
"""


def test_three_ranks_batchnorm_and_uneven_inputs():
    """At three ranks 1/3 is not exact: where one divides matters. Rank 2 has no batch at all."""
    pulled = run_on_ranks(THREE_RANKS, nproc=3, pull=("same",))["same"]
    expected = {"parameters": True, "buffers": True, "buckets": 2, "joined": True}
    expected |= {"default limits": True, "default buckets": 2}
    expected |= {"ours, module(x) averages": True, "DDP, module(x) averages": False}
    assert pulled == [expected] * 3
