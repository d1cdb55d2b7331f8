"""Slices, names and refusals of the checkpoints; what ranks write and read is proved on the pages."""

import json
from itertools import pairwise

import pytest
import torch
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from helpers.lessons import checkpoints
from helpers.lessons.checkpoint_names import (
    load_groups,
    named_groups,
    named_tensors,
    plain_names,
)
from helpers.lessons.killed_while_saving import after_kills, latest, of_the_killed
from helpers.lessons.resume_exactly import new_job, save_job
from helpers.lessons.small_gpt import GPT, Config, batch, train_step

TINY = Config(layers=1, width=8, heads=2, context=8)


@st.composite
def grids(draw):
    """A shape, a grid of boxes (start, shape) that covers it, and one more box inside."""
    shape = draw(st.lists(st.integers(1, 7), min_size=1, max_size=3))
    boxes = [([], [])]
    for size in shape:
        cuts = sorted({0, size, *draw(st.lists(st.integers(0, size), max_size=3))})
        spans = [(a, b - a) for a, b in pairwise(cuts)]
        boxes = [([*s, a], [*n, b]) for s, n in boxes for a, b in spans]
    start = [draw(st.integers(0, size - 1)) for size in shape]
    wanted = start, [draw(st.integers(1, n - s)) for s, n in zip(start, shape, strict=True)]
    return shape, boxes, wanted


class Slice:
    """Stands for a DTensor: the shape and dtype of the whole, and this rank's box of it."""

    def __init__(self, whole, box):
        self.shape, self.dtype, self.box = whole.shape, whole.dtype, box
        at = tuple(slice(s, s + n) for s, n in zip(*box, strict=True))
        self.memory = whole[at].clone()


@settings(max_examples=60, derandomize=True, deadline=None)
@given(grids())
def test_any_box_is_read_from_any_grid(tmp_path_factory, grid):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoints, "local", lambda tensor: tensor.memory)
        patch.setattr(checkpoints, "place", lambda tensor: (*tensor.box, True))
        write_and_read(tmp_path_factory.mktemp("grid"), *grid)


def write_and_read(folder, shape, boxes, wanted):
    whole = torch.randn(shape, dtype=torch.bfloat16)
    index = {}
    for rank, box in enumerate(boxes):
        with open(folder / f"rank_{rank}.bin", "wb") as file:
            for name, entry in checkpoints.write_slices(file, {"w": Slice(whole, box)}).items():
                index.setdefault(name, entry | {"slices": []})["slices"] += entry["slices"]
    (folder / "index.json").write_text(json.dumps({"tensors": index}))
    mine = Slice(torch.zeros_like(whole), wanted)
    nbytes = checkpoints.read(folder, {"w": mine})
    assert torch.equal(mine.memory, Slice(whole, wanted).memory)
    rows = [s["shape"][1:] for s in index["w"]["slices"]]
    assert nbytes >= mine.memory.nbytes
    if all(row == shape[1:] == wanted[1][1:] for row in rows):
        assert nbytes == mine.memory.nbytes, "whole rows are read to the byte"


@pytest.mark.parametrize("rank", range(6))
def test_place_agrees_with_dtensor(rank):
    from torch.distributed.tensor import DTensor, Replicate, Shard
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=6)
    try:
        mesh = dist.device_mesh.init_device_mesh("cpu", (2, 3))
        for how in ([Shard(0), Shard(0)], [Replicate(), Shard(1)], [Shard(1), Shard(0)]):
            for shape in ((7, 5), (2, 2), (13, 1)):
                size, offset = compute_local_shape_and_global_offset(shape, mesh, how)
                here = DTensor.from_local(
                    torch.zeros(size), mesh, how, run_check=False, shape=shape, stride=(shape[1], 1)
                )
                start, mine, first = checkpoints.place(here)
                assert (tuple(mine), here.to_local().shape) == (tuple(size), torch.Size(size))
                if 0 not in size:  # an empty slice lies nowhere
                    assert tuple(start) == tuple(offset)
                assert first == (how[0] != Replicate() or rank < 3)
    finally:
        dist.destroy_process_group()


def trained():
    model = GPT(TINY)
    optimizer = torch.optim.AdamW(model.parameters())
    train_step(model, optimizer, *batch(0, size=2, context=8))
    return model, optimizer


def test_refusals(tmp_path):
    model, optimizer = trained()
    tensors = named_tensors(model, optimizer)
    checkpoints.save(tmp_path / "a", tensors)
    with pytest.raises(FileExistsError):
        checkpoints.save(tmp_path / "a", tensors)
    with pytest.raises(KeyError, match="no such"):
        checkpoints.read(tmp_path / "a", {"no such": torch.zeros(2)})
    name, weight = next(iter(tensors.items()))
    for wrong in (weight.detach().double(), weight.detach()[1:]):
        with pytest.raises(ValueError, match="was saved as"):
            checkpoints.read(tmp_path / "a", {name: wrong})
    data = (tmp_path / "a/rank_0.bin").read_bytes()
    (tmp_path / "a/rank_0.bin").write_bytes(data[:-1])
    with pytest.raises(ValueError, match="too short"):
        checkpoints.read(tmp_path / "a", tensors)
    index = checkpoints.read_index(tmp_path / "a")
    index["tensors"][name]["slices"] = []
    (tmp_path / "a/index.json").write_text(json.dumps(index))
    with pytest.raises(ValueError, match="in no file"):
        checkpoints.read(tmp_path / "a", tensors)


def test_a_folder_without_an_index_is_no_checkpoint(tmp_path):
    assert latest(tmp_path) is None
    for step in (9, 10):
        checkpoints.save(tmp_path / f"step_{step:09}", {"w": torch.ones(2)})
    (tmp_path / "step_000000011").mkdir()
    assert latest(tmp_path).name == "step_000000010"


def test_names_leave_out_what_state_dict_leaves_out():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.bias = None
            self.register_parameter("gone", None)
            self.register_buffer("kept", torch.ones(1))
            self.register_buffer("scratch", torch.ones(1), persistent=False)
            self.module = nn.BatchNorm1d(2)
            self.again = self.module
            self.none = None

    model = nn.Sequential(Odd(), GPT(Config(layers=1, width=8, heads=2, context=8, tied=True)))
    assert list(plain_names(model)) == list(model.state_dict())


def in_two_groups(model, first_decays, lr=1e-2):
    named = list(model.named_parameters())
    body = {"params": [w for name, w in named if "blocks" in name], "weight_decay": 0.1}
    rest = {"params": [w for name, w in named if "blocks" not in name]}
    return torch.optim.AdamW([body, rest] if first_decays else [rest, body], lr=lr)


def test_groups_come_back_by_the_names_of_their_parameters(tmp_path):
    model, other = GPT(TINY), GPT(TINY, seed=1)
    optimizer = in_two_groups(model, first_decays=True)
    train_step(model, optimizer, *batch(0, size=2, context=8))
    optimizer.param_groups[0] |= {"lr": 3e-3, "betas": (0.8, 0.9)}
    plain = {"groups": named_groups(model, optimizer)}
    checkpoints.save(tmp_path / "a", named_tensors(model, optimizer), plain)
    again = in_two_groups(other, first_decays=False, lr=1.0)
    checkpoints.load(tmp_path / "a", other, again)
    assert [group["lr"] for group in again.param_groups] == [1e-2, 3e-3]
    assert [group["betas"] for group in again.param_groups] == [(0.9, 0.999), (0.8, 0.9)]
    assert [group["weight_decay"] for group in again.param_groups] == [0.01, 0.1]
    for job in ((model, optimizer), (other, again)):
        train_step(*job, *batch(1, size=2, context=8))
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)


def test_an_optimizer_is_not_loaded_without_its_groups(tmp_path):
    model, optimizer = trained()
    checkpoints.save(tmp_path / "a", named_tensors(model, optimizer))
    with pytest.raises(KeyError, match="groups"):
        checkpoints.load(tmp_path / "a", model, optimizer)
    checkpoints.load(tmp_path / "a", model)
    with pytest.raises(KeyError):  # grouped otherwise
        load_groups(model, optimizer, named_groups(model, in_two_groups(model, True)))


def test_wrappers_are_left_out_of_names():
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper

    model = GPT(TINY)
    names = list(plain_names(model))
    model.blocks[0] = torch.compile(checkpoint_wrapper(model.blocks[0]), backend="eager")
    assert list(plain_names(model)) == names


def on_rank(rank, root):
    """A tensor that is a shard, and no DTensor; then one that is the same on both ranks."""
    meet = f"file://{root}/meet"
    dist.init_process_group("gloo", init_method=meet, rank=rank, world_size=2)
    with pytest.raises(ValueError, match="shard differs among ranks"):
        checkpoints.save(root / "flat", {"shard": torch.full((3,), float(rank))})
    assert not (root / "flat" / checkpoints.INDEX).exists()
    with pytest.raises(ValueError, match="extra differs"):
        checkpoints.save(root / "name", {"extra": torch.ones(2)} if rank else {})
    checkpoints.save(root / "same", {"step": torch.tensor(3.0)})
    dist.barrier()
    before = sorted(path.read_bytes() for path in (root / "same").iterdir())
    dist.barrier()
    with pytest.raises(FileExistsError):
        save_job(root / "same", new_job(), step=4)
    dist.barrier()
    assert before == sorted(path.read_bytes() for path in (root / "same").iterdir())
    dist.destroy_process_group()


def test_two_ranks_refuse_shards_and_finished_folders(tmp_path):
    import torch.multiprocessing as mp

    mp.spawn(on_rank, (tmp_path,), nprocs=2)


@pytest.mark.parametrize(
    ("found", "ended"),
    [(["previous"] * 6, 0), (["previous"] * 5 + ["new"], 1), (["previous", "new"], 0)],
)
def test_kills_of_a_save_that_fails_or_is_short_are_refused(found, ended):
    with pytest.raises(ValueError, match="exit code"):
        of_the_killed(found, ended)


def test_kills_are_those_of_a_save_that_works(tmp_path):
    assert of_the_killed(["previous"] * 5 + ["new"], 0) == ["previous"] * 5

    def work(root, step):
        (root / "written").write_text(str(min(step, 1)))

    def raises(root, step):
        if step == 2:
            raise RuntimeError("no disk")
        work(root, step)

    for wrong in (work, raises):
        with pytest.raises(ValueError, match="exit code"):
            after_kills(wrong, lambda root: "previous", __name__)
