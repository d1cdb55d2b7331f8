"""Do the norms train, while the blocks still compute in bfloat16?"""

import torch
import torch.distributed as dist

from helpers.exercises import load_program


def check(program_source: str) -> None:
    """Raise AssertionError unless most norm weights moved, computed in bfloat16."""
    leave_group()  # of a run that ended in an error
    try:
        program = load_program(program_source)
    finally:
        leave_group()
    moved = getattr(program, "moved", 0)
    weights = sum(weight.numel() for weight in getattr(program, "norms", []))
    assert weights == 160, "keep `norms`, the 160 weights of five norms, and `moved`"
    assert moved > weights / 2, f"{moved} of {weights} norm weights moved"
    assert program.computed == {torch.bfloat16}, "the blocks no longer compute in bfloat16"
    rates = {group["lr"] for group in program.optimizer.param_groups}
    assert max(rates) <= 1e-3, "a larger rate hides it; at the end of a schedule it comes back"
    assert program.losses[-1] < program.losses[0] - 1, "it no longer trains"


def leave_group() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()
