"""Is the gradient of the whole model no longer than the limit, and the norm the same on all ranks?"""

from helpers.exercises import run_on_ranks

PROBE = """
squares = sum(p.grad.double().square().sum() for p in model.parameters() if p.grad is not None)
torch.distributed.all_reduce(squares)
told, clipped = float(norm), squares.sqrt().item()
"""


def check(program_source: str) -> None:
    """Raise AssertionError unless both ranks report one norm, and the clipped one is 0.1."""
    pulled = run_on_ranks(program_source + PROBE, pull=("told", "clipped"), timeout=180)
    first, second = pulled["told"]
    assert first == second, f"the ranks report {first:.4f} and {second:.4f}"
    after = pulled["clipped"][0]
    assert 0.099 < after < 0.1001, f"after clipping to 0.1 the norm of the whole is {after:.4f}"
