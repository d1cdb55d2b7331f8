"""What a graph saves when a gather is left out, in a fake group of three ranks."""

import torch

from helpers.lessons.gather_again import is_gather, saved_without
from helpers.lessons.gather_in_the_graph import fake_group, gather_weights
from helpers.lessons.joint_graph import capture, split
from helpers.lessons.small_gpt import Block, Config


def test_what_is_left_out_runs_again_and_nothing_else():
    """The backward gathers what it reads: both of a norm, all matrices, no bias of a matrix."""
    with fake_group(3) as group:
        block = gather_weights(Block(Config(width=12, heads=3)), group)
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
