"""The rule for devices, with GPUs that are not there, and the facts of this machine."""

import json
import sys

import pytest
import torch
import torch.distributed as dist

from helpers import devices, ranks
from helpers.devices import choose
from helpers.paths import BookError


@pytest.mark.parametrize(
    ("gpus", "ranks_here", "device", "expected"),
    [
        (0, 2, "auto", [("gloo", "cpu"), ("gloo", "cpu")]),
        (1, 2, "auto", [("gloo", "cpu"), ("gloo", "cpu")]),
        (2, 2, "auto", [("nccl", "cuda:0"), ("nccl", "cuda:1")]),
        (8, 2, "auto", [("nccl", "cuda:0"), ("nccl", "cuda:1")]),
        (1, 1, "auto", [("nccl", "cuda:0")]),
        (2, 2, "cuda", [("nccl", "cuda:0"), ("nccl", "cuda:1")]),
        (8, 2, "cpu", [("gloo", "cpu"), ("gloo", "cpu")]),
        (1, 2, "shared-gpu", [("gloo", "cuda:0"), ("gloo", "cuda:0")]),
        (2, 3, "shared-gpu", [("gloo", "cuda:0"), ("gloo", "cuda:1"), ("gloo", "cuda:0")]),
    ],
)
def test_rule(gpus, ranks_here, device, expected):
    assert [choose(rank, ranks_here, gpus, device) for rank in range(ranks_here)] == expected


@pytest.mark.parametrize("device", ["auto", "cuda", "shared-gpu"])
@pytest.mark.parametrize("gpus", range(1, 5))
def test_never_two_nccl_ranks_on_one_gpu(gpus, device):
    for ranks_here in range(1, 9 if device != "cuda" else gpus + 1):
        chosen = [choose(rank, ranks_here, gpus, device) for rank in range(ranks_here)]
        on_nccl = [choice.device for choice in chosen if choice.backend == "nccl"]
        assert len(set(on_nccl)) == len(on_nccl)
        assert len({choice.backend for choice in chosen}) == 1


@pytest.mark.parametrize(
    ("gpus", "device", "message"),
    [
        (1, "cuda", "2 ranks, 1 GPUs"),
        (0, "shared-gpu", "needs a GPU, and there is none"),
        (0, "tpu", r'no device "tpu". Use one of: auto, cpu'),
    ],
)
def test_refused(gpus, device, message):
    with pytest.raises(BookError, match=message):
        choose(0, 2, gpus, device)


def test_description(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert devices.describe(2) == "nccl on cuda"
    assert devices.describe(3) == "gloo on cpu"


@pytest.fixture
def joined(monkeypatch):
    """Two GPUs, and no processes: what init_ranks asks of torch is noted here."""
    calls = {}
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "BOOK_RUN", "MASTER_ADDR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: calls.update(current=device))

    def init_process_group(backend, device_id):
        calls.update(backend=backend, device_id=device_id)

    monkeypatch.setattr(dist, "init_process_group", init_process_group)
    monkeypatch.setattr(dist, "get_rank", lambda: int(ranks.os.environ["RANK"]))
    monkeypatch.setattr(dist, "get_world_size", lambda: int(ranks.os.environ["WORLD_SIZE"]))
    return calls


def test_only_the_ranks_of_this_machine_need_gpus(joined, monkeypatch):
    here = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
    for name, value in here.items():
        monkeypatch.setenv(name, value)
    second_gpu = torch.device("cuda:1")
    assert ranks.init_ranks() == (3, 4, second_gpu)
    assert joined == {"backend": "nccl", "device_id": second_gpu, "current": second_gpu}
    joined.clear()
    assert ranks.init_ranks("cpu") == (3, 4, torch.device("cpu"))
    assert joined == {"backend": "gloo", "device_id": None}


def test_slurm(joined, monkeypatch):
    slurm = {"PROCID": "6", "NTASKS": "7", "LOCALID": "2", "TASKS_PER_NODE": "4,3"}
    for name, value in slurm.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    with pytest.raises(BookError, match="export MASTER_ADDR="):
        ranks.init_ranks()
    monkeypatch.setenv("MASTER_ADDR", "node1")
    monkeypatch.setattr(ranks.os, "environ", dict(ranks.os.environ))  # it adds names
    assert ranks.init_ranks() == (6, 7, torch.device("cpu"))  # four ranks on a node, two GPUs
    assert ranks.os.environ["LOCAL_WORLD_SIZE"] == "4"


def test_without_torchrun(joined, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["probe.py"])
    with pytest.raises(BookError, match=r"Start it with: torchrun .* probe.py"):
        ranks.init_ranks()


def test_machine(monkeypatch):
    facts = devices.machine()
    assert json.loads(json.dumps(facts)) == facts
    assert set(facts) == {"python", "system", "torch", "compiler", "cores", "memory", "gpus"}
    assert facts["torch"] == torch.__version__
    assert facts["cores"] >= 1
    assert facts["memory"] > 0
    assert len(facts["gpus"]) == torch.cuda.device_count()


def test_compiler(monkeypatch, tmp_path):
    fake = tmp_path / "c++"
    fake.write_text("#!/bin/sh\necho 'fake 1.2'\necho more\n")
    fake.chmod(0o755)
    monkeypatch.setenv("CXX", str(fake))
    assert devices.compiler() == {"path": str(fake), "version": "fake 1.2"}
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert devices.compiler() is None
