"""The three stages in one process (a world of one rank); their pages prove them on two and four."""

import os
import subprocess
import sys
from importlib import util

import pytest
import torch

from helpers.lessons import zero_stages
from helpers.lessons.small_gpt import GPT, Config, batch, loss_fn, train_step
from helpers.lessons.zero3_parameters import Planned
from helpers.lessons.zero_stages import STAGES, start_deepspeed, why_no_deepspeed, zero_config

TINY = Config(layers=3, width=12, heads=3, context=7)
ALL = 10**9

pytestmark = pytest.mark.usefixtures("one_rank")


def adamw(weights):
    return torch.optim.AdamW(weights, lr=1e-2)


def data(step=0):
    return batch(step, size=2, context=TINY.context)


def planned(**plan):
    return lambda model, parts, make: Planned(model, parts, make, **plan)


WRAPPERS = {
    **STAGES,
    "planned": planned(),
    "kept": planned(max_live=ALL, reuse=ALL),
    "ahead": planned(max_live=ALL, ahead=2_000),
    "few live": planned(max_live=3_000, reuse=ALL, ahead=ALL),
}


@pytest.mark.parametrize("name", WRAPPERS)
def test_trains_as_the_model_does(name):
    """With two micro-batches a step, and a forward pass without gradients before the update."""
    plain, model = GPT(TINY), GPT(TINY)
    theirs, ours = adamw(plain.parameters()), WRAPPERS[name](model, model.blocks, adamw)
    for step in range(3):
        for number in range(2):
            x, y = data(2 * step + number)
            losses = [loss_fn(net(x), y) for net in (plain, model)]
            assert torch.equal(*losses)
            for loss in losses:
                loss.backward()
        with torch.no_grad():
            assert torch.equal(plain(x), model(x))
        for optimizer in (theirs, ours):
            optimizer.step()
            optimizer.zero_grad()
    for unit in ours.units:
        unit.fetch()
    assert all(map(torch.equal, plain.parameters(), model.parameters()))


def test_what_each_stage_leaves_after_the_backward_pass():
    for stage, wrapper in STAGES.items():
        model = GPT(TINY)
        optimizer = wrapper(model, model.blocks, adamw)
        train_step(model, optimizer, *data())
        loss_fn(model(data()[0]), data()[1]).backward()
        assert all((p.grad is None) == (stage >= 2) for p in model.parameters())
        assert all((unit.gradient is not None) == (stage >= 2) for unit in optimizer.units)
        assert all((p.numel() == 0) == (stage == 3) for p in model.parameters())


@pytest.mark.parametrize("stage", STAGES)
def test_a_unit_that_no_gradient_reached_stays_as_it_is(stage):
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
    model.scale = torch.nn.Parameter(torch.ones(1))  # what is in no part
    optimizer = STAGES[stage](model, model, adamw)
    idle, used = (unit.master.detach().clone() for unit in optimizer.units[:2])
    model[1](torch.ones(2, 3)).sum().backward()
    optimizer.step()
    assert torch.equal(optimizer.units[0].master, idle)
    assert not torch.equal(optimizer.units[1].master, used)


@pytest.mark.parametrize("stage", STAGES)
def test_a_frozen_weight_is_refused(stage):
    """The optimizer would decay it: a piece has numbers of all weights, trained or not."""
    model = GPT(TINY)
    model.blocks[1].up.bias.requires_grad_(False)
    with pytest.raises(ValueError, match="frozen"):
        STAGES[stage](model, model.blocks, adamw)


def test_what_is_whole_takes_no_room_ahead():
    """Room for one block ahead, and the next is whole: the one behind it is fetched."""
    model = GPT(TINY)
    size = sum(p.numel() for p in model.blocks[0].parameters())
    optimizer = Planned(model, model.blocks, adamw, max_live=ALL, reuse=ALL, ahead=size)
    first, second, third = optimizer.units[:3]
    optimizer.known = [first, second, third]
    second.fetch()
    optimizer.fetch(first)
    assert all(weight.numel() for weight in third.weights)


def test_a_block_is_whole_only_while_it_runs():
    model = GPT(TINY)
    STAGES[3](model, model.blocks, adamw)
    seen = []
    for block in model.blocks:
        block.register_forward_hook(
            lambda *_: seen.append([bool(b.up.weight.numel()) for b in model.blocks])
        )
    loss = loss_fn(model(data()[0]), data()[1])
    # The stage's own hook came first: when ours runs, the block is released again.
    assert seen == [[False] * 3] * 3
    assert model.token.weight.numel() and not model.blocks[0].up.weight.numel()
    loss.backward()
    assert not any(weight.numel() for weight in model.parameters())


def test_max_live_limits_what_is_kept():
    model = GPT(TINY)
    sizes = [sum(p.numel() for p in block.parameters()) for block in model.blocks]
    root = sum(p.numel() for p in model.parameters()) - sum(sizes)
    limit = root + sizes[0] + 1
    optimizer = Planned(model, model.blocks, adamw, max_live=limit, reuse=ALL)
    for _ in range(2):
        loss = loss_fn(model(data()[0]), data()[1])
        kept = [bool(block.up.weight.numel()) for block in model.blocks]
        loss.backward()
        optimizer.step()
    assert kept == [True, False, False]


def test_without_deepspeed_the_reason_is_told(monkeypatch):
    monkeypatch.setattr(zero_stages.util, "find_spec", lambda name: None)
    assert start_deepspeed() is None
    assert "not installed" in why_no_deepspeed()


def test_the_config_takes_what_it_is_given():
    config = zero_config(3, 4, settings={"gradient_clipping": 1.0}, max_live_parameters=5)
    assert config["train_micro_batch_size_per_gpu"] == 4 and config["gradient_clipping"] == 1.0
    assert config["zero_optimization"]["stage"] == 3
    assert config["zero_optimization"]["max_live_parameters"] == 5


@pytest.mark.skipif(util.find_spec("deepspeed") is None, reason=why_no_deepspeed() or "installed")
def test_deepspeed_leaves_nothing_in_the_home_folder(tmp_path):
    """Takes 5 s: a step of stage 3 in a process of its own, whose home is empty."""
    home, run = tmp_path / "home", tmp_path / "run"
    home.mkdir()
    run.mkdir()
    code = """
import torch, torch.distributed as dist
from helpers.lessons.zero_stages import start_deepspeed, zero_config
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
engine, *_ = start_deepspeed().initialize(model=model, optimizer=optimizer, config=zero_config(3))
engine.backward(engine(torch.ones(1, 4)).sum())
engine.step()
"""
    env = {**os.environ, "HOME": str(home), "BOOK_RUN": str(run), "XDG_CACHE_HOME": ""}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert not list(home.rglob("*"))
    assert not list(run.rglob("*lock*"))
