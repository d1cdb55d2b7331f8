"""The modelled link, on a clock that only moves when told; its page runs it on the real one."""

import pytest
import torch

from helpers.lessons.exposed_time import Clock, Link, WiredShard
from helpers.lessons.fsdp_at_work import Policy
from helpers.lessons.small_gpt import GPT, Config, batch, loss_fn

TINY = Config(layers=3, width=12, heads=3, context=7)


def test_messages_go_one_after_another_and_only_a_wait_moves_the_clock():
    clock = Clock()
    link = Link(latency=1.0, bandwidth=10.0, clock=clock)
    first, second = link.send("a", 20), link.send("b", 10)
    assert (first.arrives, second.leaves, second.arrives) == (3.0, 3.0, 5.0)
    clock.sleep(4.0)
    first.wait()
    assert clock.time == 4.0 and link.waits == []
    second.wait(), second.wait()
    assert clock.time == 5.0 and link.waits == [("b", 4.0, 5.0)]
    clock.sleep(5.0)
    assert link.send("c", 0).leaves == 10.0  # an idle link does not send into the past
    assert (link.busy, link.exposed) == (6.0, 1.0)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("prefetch", [0, 1, 3])
def test_gathers_and_reductions_of_a_step(one_rank, prefetch, keep):
    """Nothing computes on this clock, so all of the link's time is waited for: every message
    that FSDP sends is there once, whatever the order, and the gradients are the model's."""
    plain, model = GPT(TINY), GPT(TINY)
    link = Link(latency=1.0, clock=Clock())
    wired = WiredShard(model, model.blocks, Policy(prefetch=prefetch), keep, link=link)
    x, y = batch(0, size=2, context=7)
    for each in (plain, wired):
        loss_fn(each(x), y).backward()
    for step in range(2):
        link.clear()
        loss_fn(wired(x), y).backward()
        kinds = [message.what for message in link.messages]
        gathers = 4 if keep else 7
        assert (kinds.count("gather"), kinds.count("reduce")) == (gathers, 4), step
        assert link.exposed == link.busy == gathers + 4
    squares = sum(p.grad.square().sum() for p in plain.parameters())
    summed = sum(shard.grad.square().sum() for shard in wired.parameters())
    assert torch.allclose(summed, 9 * squares)  # three passes add up


def test_a_free_link_is_never_waited_for(one_rank):
    model = GPT(TINY)
    wired = WiredShard(model, model.blocks, link=Link(clock=Clock()))
    loss_fn(wired(batch(0, size=2, context=7)[0]), batch(0, size=2, context=7)[1]).backward()
    assert wired.link.busy == wired.link.exposed == 0
