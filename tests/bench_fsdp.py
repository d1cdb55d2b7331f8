"""Step time of the book's FSDP over FSDP2's, both eager, paired inside the ranks. `make bench`.

Two ranks on the CPU. Both run in step, since each collective makes them wait for each other, and
take turns: A B B A A B ... A step is forward, backward, AdamW and a barrier.
"""

import json
import os
import subprocess
import sys

import pytest

MOST = 1.0
SCRIPT = """
import json
import torch
import torch.distributed as dist
from helpers import paired
from helpers.lessons.fsdp_at_work import Policy, WorkingShard
from helpers.lessons.fsdp_sharding import FullyShard, library
from helpers.lessons.small_gpt import GPT, SIZES, Config, batch, train_step
from helpers.ranks import init_ranks

rank, world_size, device = init_ranks("cpu")
kinds = {
    "sharding": FullyShard,
    "at work": lambda model, parts: WorkingShard(model, parts, Policy(prefetch=1)),
}
found = {}
for name, ours in kinds.items():
    config, steps = Config(**SIZES["laptop"]), []
    x, y = batch(0, rank, world_size, size=8, context=64)
    for shard in (ours, library):
        model = GPT(config)
        model = shard(model, model.blocks)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        steps.append(lambda m=model, o=optimizer: (train_step(m, o, x, y), dist.barrier()))
    pairs = paired(*steps, rounds=21, warmup=2)
    found[name] = (pairs.ratio, *pairs.spread)
if rank == 0:
    print(json.dumps(found))
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    script = tmp_path_factory.mktemp("bench") / "steps.py"
    script.write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", "2", str(script)]
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=env, check=True, capture_output=True, text=True, timeout=600)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", ["sharding", "at work"])
def test_a_step_takes_no_longer_than_fsdp2s(found, name, capsys):
    ratio, low, high = found[name]
    with capsys.disabled():
        print(f"\n{name}: ours / FSDP2 {ratio:.2f} (quartiles {low:.2f}-{high:.2f}, 21 pairs)")
    assert ratio <= MOST
