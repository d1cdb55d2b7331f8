"""Are the saved weights the weights, after each rank kept its half?"""

import torch

from helpers.exercises import run_on_ranks


def check(program_source: str) -> None:
    """Raise AssertionError unless `saved` equals `weights` on both ranks, which kept half each."""
    pulled = run_on_ranks(program_source, nproc=2, pull=("weights", "kept", "saved"))
    for weights, kept, saved in zip(*pulled.values(), strict=True):
        assert kept < len(weights), "each rank must keep a shard only"
        found = saved.int().tolist()
        assert torch.equal(saved, weights), f"{weights.int().tolist()} was saved as {found}"
