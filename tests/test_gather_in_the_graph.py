"""Gathers in the graph, on rank 1 of a fake world of three and in a world of one; about 5 s."""

from contextlib import contextmanager

import pytest
import torch
import torch.distributed as dist
from torch.testing._internal.distributed import fake_pg

from helpers.lessons.gather_in_the_graph import (
    GatheredUnit,
    gather_weights,
    is_gather,
    my_rows,
    saved_without,
)
from helpers.lessons.joint_graph import capture, split
from helpers.lessons.small_gpt import Block, Config

LITTLE = Config(width=12, heads=3)


@contextmanager
def world(rank, ranks):
    if ranks == 1:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    else:
        dist.init_process_group("fake", store=fake_pg.FakeStore(), rank=rank, world_size=ranks)
    try:
        yield dist.group.WORLD
    finally:
        dist.destroy_process_group()


@pytest.mark.parametrize("rows, mine", [(6, [2, 3]), (4, [2, 3]), (2, [1]), (1, [0])])
def test_rows_of_the_second_of_three(rows, mine):
    """Each rank has as many rows as the first; what is not there is zeros."""
    share = my_rows(torch.arange(1.0, rows + 1)[:, None], 1, 3)
    each = -(-rows // 3)
    wanted = [float(row + 1) if row < rows else 0.0 for row in range(each, 2 * each)]
    assert share.flatten().tolist() == wanted


@pytest.mark.parametrize("shard", [gather_weights, GatheredUnit])
def test_one_rank_is_the_block_itself(shard):
    torch.manual_seed(0)
    block, x = Block(LITTLE), torch.randn(2, 5, 12, requires_grad=True)
    plain = Block(LITTLE)
    plain.load_state_dict(block.state_dict())
    with world(0, 1) as group:
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


def test_what_is_left_out_runs_again_and_nothing_else():
    """The backward gathers what it reads: both of a norm, all matrices, no bias of a matrix."""
    with world(0, 3) as group:
        block = gather_weights(Block(LITTLE), group)
        x = torch.randn(2, 5, 12, requires_grad=True)
        joint, _ = capture(lambda x, p: block(x).sum(), x, list(block.parameters()))
    gathers = [node for node in joint.forward if is_gather(node)]
    again = []
    for left_out in ([], gathers[:1], gathers):
        saved = saved_without(joint, left_out)
        _, backward = split(joint, saved)
        again.append([node.name for node in backward.graph.nodes if is_gather(node)])
        values = {node.name for node in saved if node.op == "call_function"}
        assert not values & {node.name for node in left_out}
    assert [len(names) for names in again] == [0, 1, 8]
    assert again[1] == [gathers[0].name]
