"""Does a distributed cell of any kind fail once in RUNS times? `make soak`, minutes.

Each kind runs RUNS times in one process, as in a notebook. Every run must end as the kind says,
with the same values and the same printed lines, and leave no process, port or file.
"""
# ruff: noqa: F811 - fixtures are imported, and named again as parameters

import os
import time
from collections import Counter

import pytest
import torch
from jobs import CHAPTER, IMPORTS, book, witness  # noqa: F401

from helpers import cluster
from helpers.cells import RecordedCell
from helpers.launch import Job, TorchrunError, run
from helpers.slicing import slice_cell

RUNS = int(os.environ.get("RUNS", "50"))
RANKS = 'rank, world_size, device = init_ranks("cpu")\n'
SUM = "out = torch.ones(4) * rank\ndist.all_reduce(out)\nprint(out.sum().item())"
FSDP = """
from torch.distributed.fsdp import fully_shard
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
with torch.no_grad():
    for p in model.parameters():
        p.fill_(0.5)
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    model(torch.ones(2, 8)).sum().backward()
    optimizer.step(), optimizer.zero_grad()
out = [p.full_tensor().detach() for p in model.parameters()]
"""
COMPILED = """
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
step = torch.compile(model, backend="aot_eager")
for _ in range(2):
    step(torch.ones(2, 8)).sum().backward()
out = model.module.weight.grad
"""
KINDS = {  # name: (body, options of the job, what the error says)
    "two ranks": (SUM, {"pull": ("out",)}, None),
    "four ranks, pushed": (SUM + "\nout += given", {"nproc": 4, "pull": ("out",)}, None),
    "FSDP2": (FSDP, {"pull": ("out",)}, None),
    "DDP, compiled": (COMPILED, {"pull": ("out",)}, None),
    "a rank raises": ("if rank:\n    raise ValueError('as asked')\ndist.barrier()", {}, "as asked"),
    "a rank is killed": ("if rank:\n    os.kill(os.getpid(), 9)\ndist.barrier()", {}, "SIGKILL"),
    "a rank hangs": ("if rank:\n    time.sleep(600)", {"timeout": 2.0}, "rank 1 was still running"),
    "two hosts": (SUM, {"nproc": 4, "hosts": 2, "wires": ("200mbit",) * 2, "pull": ("out",)}, None),
}


@pytest.mark.parametrize("kind", KINDS)
def test_it_never_fails(kind, book, witness, capsys):
    body, options, says = KINDS[kind]
    if options.get("hosts") and (why := cluster.why_not()):
        pytest.skip(why)
    options = dict(options)
    if "given" in body:
        options["push"] = {"given": torch.arange(4.0)}
    pull, push = options.get("pull", ()), tuple(options.get("push", ()))
    cells = [RecordedCell(1, IMPORTS.strip())]
    script = slice_cell(RANKS + body, cells, list(push), pull, number=2)
    seen, began = Counter(), time.perf_counter()
    for _ in range(RUNS):
        try:
            values = run(Job("probe", CHAPTER, script, **options)).pulled
            ending = "ended well"
        except TorchrunError as error:
            values, ending = {}, str(error)
        seen[ending, repr(values), capsys.readouterr().out] += 1
    took = (time.perf_counter() - began) / RUNS
    with capsys.disabled():
        print(f"\n{kind}: {RUNS} runs of {took:.1f} s, {len(seen)} outcome(s)")
    assert len(seen) == 1, seen
    [(ending, _, _)] = seen
    assert (says in ending) if says else ending == "ended well"
    witness.look()
    assert not witness._left(folders=0)
