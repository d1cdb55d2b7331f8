"""Does step(batch) run captured graphs with both linear layers, and keep model's names?"""

from helpers.exercises import load_program
from helpers.lessons.first_call import recorded


def check(program_source: str) -> None:
    """Raise AssertionError unless the program's `step` runs the model from captured graphs."""
    with recorded() as recorder:
        program = load_program(program_source)
        step, batch = getattr(program, "step", None), getattr(program, "batch", None)
        assert callable(step) and batch is not None, "keep the names `step` and `batch`"
        calls = recorder.calls
        step(batch)
    assert recorder.calls > calls, "step(batch) ran no captured graph"
    linear = sum(recorder.ops(i).count("linear") for i in range(len(recorder)))
    assert linear >= 2, f"the captured graphs hold {linear} of the model's 2 linear layers"
