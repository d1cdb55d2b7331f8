"""Does the program train the same with and without its evaluations, and still evaluate?"""

import torch.distributed as dist

from helpers.exercises import load_program


def check(program_source: str) -> None:
    """Raise AssertionError unless `watched` equals `quiet` and `held_out` was filled."""
    leave_group()  # of a run that ended in an error
    try:
        program = load_program(program_source)
    finally:
        leave_group()
    quiet, watched, held_out = (
        getattr(program, name, []) for name in ("quiet", "watched", "held_out")
    )
    assert len(quiet) == len(watched) == 12, "keep `quiet` and `watched`, the losses of 12 steps"
    assert len(set(held_out)) >= 4, f"it evaluated {len(set(held_out))} times; four were asked for"
    moved = [step for step, (a, b) in enumerate(zip(quiet, watched, strict=True)) if a != b]
    assert not moved, f"with evaluations the loss of step {moved[0]} is another"
    assert quiet[-1] < quiet[0] - 1, "it no longer trains"


def leave_group() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()
