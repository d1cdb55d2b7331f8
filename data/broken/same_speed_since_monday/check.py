"""Does step(batch) run a captured graph, and does the program still know its FLOPs?"""

from helpers.exercises import load_program
from helpers.lessons.first_call import recorded


def check(program_source: str) -> None:
    """Raise AssertionError unless `step` runs from captured graphs and `flops` is right."""
    with recorded() as recorder:
        program = load_program(program_source)
        step, batch = getattr(program, "step", None), getattr(program, "batch", None)
        assert callable(step) and batch is not None, "keep the names `step` and `batch`"
        calls = recorder.calls
        step(batch)
    assert recorder.calls > calls, "step(batch) ran no captured graph"
    expected = 2 * 2 * 64 * 256 * 256  # two layers, a multiplication and an addition each
    flops = getattr(program, "flops", None)
    assert flops == expected, f"the report must stay: {expected:,} FLOPs, not {flops}"
