"""Gathers in the graph, in a group of one rank; about 5 s."""

import pytest
import torch
import torch.distributed as dist

from helpers.lessons.gather_in_the_graph import (
    GatheredUnit,
    gather_model,
    gather_weights,
    my_rows,
)
from helpers.lessons.small_gpt import GPT, Block, Config

LITTLE = Config(width=12, heads=3)


@pytest.fixture
def group():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield dist.group.WORLD
    dist.destroy_process_group()


@pytest.mark.parametrize("rows, mine", [(6, [2, 3]), (4, [2, 3]), (2, [1]), (1, [0])])
def test_rows_of_the_second_of_three(rows, mine):
    """Each rank has as many rows as the first; what is not there is zeros."""
    share = my_rows(torch.arange(1.0, rows + 1)[:, None], 1, 3)
    each = -(-rows // 3)
    wanted = [float(row + 1) if row < rows else 0.0 for row in range(each, 2 * each)]
    assert share.flatten().tolist() == wanted


@pytest.mark.parametrize("shard", [gather_weights, GatheredUnit])
def test_one_rank_is_the_block_itself(shard, group):
    torch.manual_seed(0)
    block, x = Block(LITTLE), torch.randn(2, 5, 12, requires_grad=True)
    plain = Block(LITTLE)
    plain.load_state_dict(block.state_dict())
    sharded = shard(block, group)
    outputs = plain(x), sharded(x)
    for output in outputs:
        output.square().sum().backward()
    assert torch.equal(*outputs)
    wanted = {p.shape: [] for p in plain.parameters()}
    for model in (plain, sharded):
        for p in model.parameters():
            wanted[p.shape].append(p.grad)
    for found in wanted.values():
        half = len(found) // 2
        assert all(any(torch.equal(a, b) for b in found[half:]) for a in found[:half])


@pytest.mark.parametrize("shard", [gather_weights, GatheredUnit])
def test_frozen_stays_frozen(shard, group):
    block = Block(LITTLE)
    frozen = list(block.parameters())[::2]
    for weight in frozen:
        weight.requires_grad_(False)
    shapes = sorted(tuple(p.shape) for p in frozen)
    sharded = shard(block, group)
    sharded(torch.randn(2, 5, 12)).square().sum().backward()
    still = [p for p in sharded.parameters() if not p.requires_grad]
    assert sorted(tuple(p.shape) for p in still) == shapes
    assert all((p.grad is None) != p.requires_grad for p in sharded.parameters())


def test_one_weight_under_two_names_of_a_module_is_refused(group):
    layer = torch.nn.Linear(4, 4)
    layer.again = layer.weight
    with pytest.raises(ValueError, match="share a weight"):
        gather_weights(layer, group)


def test_a_unit_refuses_buffers_and_takes_its_module_along_to_evaluation(group):
    block = Block(Config(width=12, heads=3, dropout=0.5))
    with pytest.raises(ValueError, match="buffers"):
        GatheredUnit(torch.nn.BatchNorm1d(4), group)
    unit, x = GatheredUnit(block, group), torch.randn(2, 5, 12)
    first = unit.eval()(x)
    assert torch.equal(first, unit(x))
    assert not torch.equal(first, unit.train()(x))


@pytest.mark.parametrize("shard", [gather_weights, GatheredUnit, gather_model])
def test_tied_weights_are_refused(shard, group):
    model = GPT(LITTLE)
    model.head.weight = model.token.weight
    with pytest.raises(ValueError, match="share a weight"):
        shard(model, group)
    assert model.head.weight is model.token.weight
