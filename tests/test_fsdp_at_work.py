"""WorkingShard in one process (a world of one rank); fsdp_at_work proves it on two ranks, and
fsdp_on_a_mesh on four, as two by two."""

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from helpers.lessons.fsdp_at_work import Policy, WorkingShard
from helpers.lessons.fsdp_on_a_mesh import clip_by_true_norm, fill
from helpers.lessons.small_gpt import GPT, Config, batch, loss_fn, train_step

TINY = Config(layers=3, width=12, heads=3, context=7)

pytestmark = pytest.mark.usefixtures("one_rank")


PLAIN = Policy()


def working(policy=PLAIN, kind=GPT):
    model = kind(TINY)
    return WorkingShard(model, model.blocks, policy)


def data(step=0):
    return batch(step, size=2, context=TINY.context)


@pytest.mark.parametrize("prefetch", [0, 1, 5])
def test_trains_as_the_model_does(prefetch):
    plain, ours = GPT(TINY), working(Policy(prefetch=prefetch))
    optimizers = [torch.optim.AdamW(model.parameters(), lr=1e-2) for model in (plain, ours)]
    for step in range(4):
        losses = [
            train_step(model, optimizer, *data(step))
            for model, optimizer in zip((plain, ours), optimizers, strict=True)
        ]
        assert torch.equal(*losses)
    whole = ours.full_parameters()
    assert all(torch.equal(whole[name], weight) for name, weight in plain.named_parameters())
    assert not any(unit.full.untyped_storage().nbytes() for unit in ours.units)


def test_prefetch_starts_what_is_next_in_each_direction():
    ours, started = working(Policy(prefetch=1)), []
    loss_fn(ours(data()[0]), data()[1]).backward()  # teaches the order
    start = type(ours.units[0]).start
    number = {unit: i for i, unit in enumerate(ours.units)}  # blocks 0 to 2, root 3
    for unit in ours.units:
        unit.start = lambda unit=unit: (
            started.append(number[unit]) if not unit.full.untyped_storage().nbytes() else None,
            start(unit),
        )
    loss = loss_fn(ours(data()[0]), data()[1])
    assert started == [3, 0, 1, 2]
    started.clear()
    loss.backward()
    assert started == [2, 1, 0]


def test_gradients_held_back_add_up():
    plain, ours = GPT(TINY), working()
    for step in range(3):
        ours.sync = step == 2
        for model in (plain, ours):
            loss_fn(model(data(step)[0]), data(step)[1]).backward()
        assert (ours.units[0].shard.grad is not None) == ours.sync
    assert_same_gradients(plain, ours)
    assert not any(unit.waiting is not None for unit in ours.units)


def test_keeps_float32_and_computes_in_bfloat16():
    ours, seen = working(Policy(torch.bfloat16, torch.float32)), []
    ours.module.blocks[0].register_forward_pre_hook(lambda block, _: seen.append(block.up.weight))
    loss_fn(ours(data()[0]), data()[1]).backward()
    assert seen[0].dtype == torch.bfloat16
    assert {shard.dtype for shard in ours.parameters()} == {torch.float32}
    assert {shard.grad.dtype for shard in ours.parameters()} == {torch.float32}
    assert all(weight.dtype == torch.float32 for weight in ours.full_parameters().values())


class Checkpointed(GPT):
    reentrant = False

    def forward(self, x):
        x = self.token(x) + self.position.weight[: x.shape[1]]
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=self.reentrant)
        return self.head(self.norm(x))


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("prefetch", [0, 1])
def test_recomputes_with_the_weights_that_are_there(reentrant, prefetch):
    plain, ours = GPT(TINY), working(Policy(prefetch=prefetch), Checkpointed)
    ours.module.reentrant = reentrant
    for step in range(2):
        for model in (plain, ours):
            loss_fn(model(data(step)[0]), data(step)[1]).backward()
    assert_same_gradients(plain, ours)
    assert not any(unit.full.untyped_storage().nbytes() for unit in ours.units)


@pytest.mark.parametrize("most", [1e-2, 1e3])
def test_clips_as_torch_does(most):
    plain, ours = GPT(TINY), working()
    for model in (plain, ours):
        loss_fn(model(data()[0]), data()[1]).backward()
    norm = nn.utils.clip_grad_norm_(plain.parameters(), most)
    assert torch.allclose(clip_by_true_norm(ours, most), norm)
    assert_same_gradients(plain, ours)
    assert norm_of(ours) <= most * 1.0001


def test_fill_gives_shards_and_no_more():
    reference = GPT(TINY).state_dict()

    class Bare(GPT):
        def init_weights(self, seed):
            pass

    with torch.device("meta"):
        model = Bare(TINY)
    ours = WorkingShard(model, model.blocks)
    assert all(shard.is_meta for shard in ours.parameters())
    fill(ours, reference.__getitem__, "cpu")
    whole = ours.full_parameters()
    assert all(torch.equal(whole[name], reference[name]) for name in reference)
    assert torch.equal(ours(data()[0]), GPT(TINY)(data()[0]))


def assert_same_gradients(plain, ours):
    """Each gradient of a plain model equals that of ours; overwrites the weights of ours."""
    norm = norm_of(ours)
    for shard in ours.parameters():
        shard.data.copy_(shard.grad)
    mine = ours.full_parameters()  # the gradients
    for name, weight in plain.named_parameters():
        torch.testing.assert_close(mine[name], weight.grad, rtol=1e-5, atol=1e-8, msg=name)
    torch.testing.assert_close(norm, norm_of(plain))


def norm_of(model):
    return torch.stack([weight.grad.norm() for weight in model.parameters()]).norm()
