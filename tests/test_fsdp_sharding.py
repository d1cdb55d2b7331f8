"""FullyShard in one process (a world of one rank); its pages prove it on two ranks and four."""

import pytest
import torch
from torch import nn
from torch.distributed.fsdp import fully_shard

from helpers.lessons.fsdp_sharding import FullyShard, Unit, homes
from helpers.lessons.small_gpt import GPT, Config, batch, loss_fn, train_step

TINY = Config(layers=2, width=12, heads=3, context=7)

pytestmark = pytest.mark.usefixtures("one_rank")


def sharded(config=TINY, **options):
    model = GPT(config)
    return FullyShard(model, model.blocks, **options)


def gathered(model):
    """Bytes of all gathered buffers."""
    return sum(unit.full.untyped_storage().nbytes() for unit in model.units)


def data(step=0):
    return batch(step, size=2, context=TINY.context)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("keep", [False, True])
def test_trains_as_the_model_does(tied, keep):
    config = Config(layers=2, width=12, heads=3, context=7, tied=tied)
    plain, ours = GPT(config), sharded(config, keep=keep)
    optimizers = [torch.optim.AdamW(model.parameters(), lr=1e-2) for model in (plain, ours)]
    for step in range(5):
        losses = [
            train_step(model, optimizer, *data(step))
            for model, optimizer in zip((plain, ours), optimizers, strict=True)
        ]
        assert torch.equal(*losses)
        assert gathered(ours) == 0
    whole = ours.full_parameters()
    names = dict(plain.named_parameters(remove_duplicate=False))
    assert whole.keys() == names.keys()
    assert all(torch.equal(whole[name], weight) for name, weight in names.items())


def test_forward_frees_the_blocks_and_keeps_the_root():
    model = sharded()
    loss = loss_fn(model(data()[0]), data()[1])
    *blocks, root = (unit.full.untyped_storage().nbytes() for unit in model.units)
    assert not any(blocks) and root == model.units[-1].full.nbytes
    loss.backward()
    assert gathered(model) == 0


def test_two_forwards_before_their_backwards():
    """The second all-gather must not look to autograd like an edit of what the first one gave."""
    plain, ours = GPT(TINY), sharded()
    for model in (plain, ours):
        losses = [loss_fn(model(x), y) for x, y in (data(0), data(1))]
        sum(losses).backward()
    whole = torch.cat([weight.grad.flatten() for weight in plain.parameters()])
    mine = {}
    for unit in ours.units:
        pieces = unit.shard.grad.split([shape.numel() for shape in unit.shapes])
        for places, piece in zip(unit.homes, pieces, strict=True):
            mine |= dict.fromkeys(places.values(), piece)
    mine = torch.cat([mine[name] for name, _ in plain.named_parameters()])
    assert torch.allclose(mine, whole, atol=1e-7)


def test_an_evaluation_leaves_no_old_weights():
    model = sharded()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    loss_fn(model(data()[0]), data()[1]).backward()
    with torch.no_grad():
        before = model(data()[0])
    optimizer.step()
    with torch.no_grad():
        after = model(data()[0])
    assert not torch.equal(before, after)
    plain = GPT(TINY)
    plain.load_state_dict(model.full_parameters())
    assert torch.equal(after, plain(data()[0]))


def test_frozen_weights_get_no_gradient_and_are_freed():
    model = GPT(TINY)
    model.blocks[1].requires_grad_(False)
    model.position.requires_grad_(False)
    ours = FullyShard(model, model.blocks)
    assert [unit.shard.requires_grad for unit in ours.units] == [True, False, True, False]
    loss_fn(ours(data()[0]), data()[1]).backward()
    assert [unit.shard.grad is not None for unit in ours.units] == [True, False, True, False]
    assert gathered(ours) == 0


def test_a_frozen_unit_is_freed_before_the_backward_ends():
    model = GPT(TINY)
    model.blocks[1].requires_grad_(False)
    ours, seen = FullyShard(model, model.blocks), []
    frozen = ours.units[1]
    model.blocks[0].register_full_backward_hook(
        lambda *_: seen.append(frozen.full.untyped_storage().nbytes())
    )
    loss_fn(ours(data()[0]), data()[1]).backward()
    assert seen == [0]


def test_weights_tied_across_units_are_refused():
    model = GPT(TINY)
    model.blocks[1].up.weight = model.blocks[0].up.weight
    with pytest.raises(ValueError, match=r"blocks\.0\.up\.weight and blocks\.1\.up\.weight"):
        FullyShard(model, model.blocks)


def test_homes_of_tied_weights():
    model = GPT(Config(layers=1, width=12, heads=3, context=7, tied=True))
    assert homes(model)[model.head.weight] == {
        (model.token, "weight"): "token.weight",
        (model.head, "weight"): "head.weight",
    }


def test_a_missing_gradient_counts_as_zeros():
    layer = nn.Linear(3, 2)
    unit = Unit({layer.weight: {}, layer.bias: {}})
    packed = unit.pack([None, torch.ones(2)])
    assert packed.tolist() == [0] * 6 + [1, 1]


def test_an_evaluation_hides_the_roots_gradients_in_pytorch():
    """The symptom's second harm, in PyTorch's: clipping leaves the root out, zero_grad too."""
    for again in (False, True):
        model = GPT(TINY)
        for block in model.blocks:
            fully_shard(block)
        fully_shard(model, reshard_after_forward=again or None)
        loss_fn(model(data()[0]), data()[1]).backward()
        norm = nn.utils.get_total_norm([p.grad for p in model.parameters()]).full_tensor()
        with torch.no_grad():
            model(data()[0])
        left = [p.grad for p in model.parameters() if p.grad is not None]
        seen = nn.utils.get_total_norm(left).full_tensor()
        assert (seen == norm) == again
        model.zero_grad()
        model.reshard()
        assert all(p.grad is None for p in model.parameters()) == again
