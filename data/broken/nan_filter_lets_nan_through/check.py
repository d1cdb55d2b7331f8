"""Does the filter find every NaN, keep the rest, and leave the arithmetic of others alone?"""

import torch

from helpers.exercises import load_program


def check(program_source: str) -> None:
    """Raise AssertionError unless `replace_nan` works and eager keeps denormal numbers."""
    try:
        program = load_program(program_source)
        replace_nan = getattr(program, "replace_nan", None)
        assert callable(replace_nan), "keep the name `replace_nan`"
        x = torch.linspace(-1, 1, 37)
        x[5:30:3] = float("nan")
        x[[0, 36]] = torch.tensor([float("inf"), -float("inf")])
        expected = torch.where(x.isnan(), 0.0, x)
        replace_nan(x)
        assert torch.equal(x, expected), f"{x.isnan().sum()} NaN are left after the filter"
        kept = torch.tensor([1e-40]) * 1
        assert kept > 0, "since the program ran, 1e-40 times one is 0 everywhere in this thread"
    finally:
        torch.set_flush_denormal(False)
