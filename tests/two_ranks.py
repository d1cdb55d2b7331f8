"""Two training loops, step by step in turns on the same two ranks: for benchmarks of step time.

Both run in step, since each collective makes them wait for each other, and take turns: A B B A A B
... A step is forward, backward, AdamW and a barrier, on the CPU.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

HEAD = """
import json
import torch
import torch.distributed as dist
from helpers import paired
from helpers.lessons.small_gpt import GPT, SIZES, Config, batch, train_step
from helpers.ranks import init_ranks

rank, world_size, device = init_ranks("cpu")
found = {}

def compare(name, ours, theirs, rounds):
    config, steps = Config(**SIZES["laptop"]), []
    x, y = batch(0, rank, world_size, size=8, context=64)
    for wrap in (ours, theirs):
        model = wrap(GPT(config))
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        steps.append(lambda m=model, o=optimizer: (train_step(m, o, x, y), dist.barrier()))
    pairs = paired(*steps, rounds=rounds, warmup=3)
    found[name] = (pairs.ratio, *pairs.spread)
"""
TAIL = """
if rank == 0:
    print(json.dumps(found))
dist.destroy_process_group()
"""


def compared(program: str, folder: Path) -> dict[str, tuple[float, float, float]]:
    """Ratio of our step time to theirs, and its quartiles, for each `compare` that `program` calls."""
    script = folder / "steps.py"
    script.write_text(HEAD + program + TAIL, encoding="utf-8")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", "2", str(script)]
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=env, check=True, capture_output=True, text=True, timeout=600)
    return json.loads(done.stdout.splitlines()[-1])
