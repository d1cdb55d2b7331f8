"""OffloadedShard in one process (a world of one rank); its page proves it on two ranks and four."""

import pytest
import torch

from helpers.lessons.cpu_offload import OffloadedShard
from helpers.lessons.fsdp_at_work import Policy
from helpers.lessons.small_gpt import GPT, Config, batch, train_step

TINY = Config(layers=3, width=12, heads=3, context=7)

pytestmark = pytest.mark.usefixtures("one_rank")


@pytest.mark.parametrize("prefetch", [0, 2])
def test_trains_as_the_model_does_and_copies_each_way(prefetch):
    plain, model = GPT(TINY), GPT(TINY)
    ours = OffloadedShard(model, model.blocks, Policy(prefetch=prefetch))
    models = (plain, ours)
    optimizers = [torch.optim.AdamW(model.parameters(), lr=1e-2) for model in models]
    for step in range(3):
        x, y = batch(step, size=2, context=7)
        losses = [train_step(*pair, x, y) for pair in zip(models, optimizers, strict=True)]
        assert torch.equal(*losses)
    assert ours.bus.calls == {"up": 3 * 7, "back": 3 * 4}
    whole = ours.full_parameters()
    assert all(torch.equal(whole[name], weight) for name, weight in plain.named_parameters())


def test_what_is_sent_and_what_came_are_no_views_of_each_other():
    """On a CPU `.to("cpu")` copies nothing: here a write on one side must not reach the other."""
    model = GPT(TINY)
    ours = OffloadedShard(model, model.blocks)
    unit = ours.units[0]
    sent = unit.mine()
    assert sent.untyped_storage().data_ptr() != unit.shard.untyped_storage().data_ptr()
    mean = torch.ones_like(sent)
    unit.add(mean)
    mean.zero_()
    assert unit.shard.grad.eq(1).all()
