"""Does the recipe train with DeepSpeed as it does without, to the last bit?"""

from helpers.exercises import run_on_ranks
from helpers.lessons.zero_stages import why_no_deepspeed


def check(program_source: str) -> None:
    """Raise AssertionError unless six losses with DeepSpeed equal six without."""
    assert not why_no_deepspeed(), why_no_deepspeed()
    pulled = run_on_ranks(program_source, nproc=1, pull=("plain", "moved"), timeout=180)
    (plain,), (moved,) = pulled["plain"], pulled["moved"]
    assert len(plain) == len(moved) == 6, "keep `plain` and `moved`, the losses of six steps"
    differ = [step for step, (a, b) in enumerate(zip(plain, moved, strict=True)) if a != b]
    assert not differ, f"with DeepSpeed the loss of step {differ[0]} is another"
    assert plain[-1] < 4.3, "the plain recipe is not the one to change"
