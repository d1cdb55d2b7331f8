"""What `%%torchrun` costs over running the same script with torchrun by hand. `make bench`."""

import os
import statistics
import subprocess
import sys
import time

from jobs import CHAPTER, book, job  # noqa: F401 - book is a fixture

from helpers import carry
from helpers.launch import run

PAIRS = 5
MOST = 1.10
BODY = """
rank, world_size, device = init_ranks("cpu")
total = x * (rank + 1)
dist.all_reduce(total)
print(rank, total.sum().item())
"""


def seconds(action) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def test_overhead(book, capsys):  # noqa: F811
    """Median of the ratios of pairs that ran one after the other, each order in turn."""
    import torch

    cell = job(BODY, push={"x": torch.ones(1000)}, pull=("total",))
    published = carry.published(CHAPTER) / "probe.py"
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    torchrun += ["--nproc-per-node", "2", str(published)]
    env = os.environ | {"OMP_NUM_THREADS": "1"}

    def by_cell():
        run(cell)

    def by_hand():
        subprocess.run(torchrun, env=env, check=True, capture_output=True)

    by_cell()  # publishes the script, and warms the disk's cache for both
    pairs = []
    for i in range(PAIRS):
        order = (by_cell, by_hand) if i % 2 else (by_hand, by_cell)
        took = {action: seconds(action) for action in order}
        pairs.append((took[by_cell], took[by_hand]))
    ratios = sorted(a / b for a, b in pairs)
    median = statistics.median(ratios)
    hand = statistics.median(b for _, b in pairs)
    with capsys.disabled():
        spread = f"{ratios[0]:.3f}-{ratios[-1]:.3f}"
        print(f"\n%%torchrun / torchrun: {median:.3f} ({spread}, {PAIRS} pairs of {hand:.1f} s)")
    assert median < MOST
