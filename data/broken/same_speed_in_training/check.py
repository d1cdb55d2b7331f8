"""Does step(batch) compute the layers and the loss in captured graphs?"""

from helpers.exercises import load_program
from helpers.lessons.first_call import recorded


def check(program_source: str) -> None:
    """Raise AssertionError unless the program's `step` runs its loss from captured graphs."""
    with recorded() as recorder:
        program = load_program(program_source)
        step, batch = getattr(program, "step", None), getattr(program, "batch", None)
        assert callable(step) and batch is not None, "keep the names `step` and `batch`"
        calls = recorder.calls
        loss = step(batch)
    assert recorder.calls > calls, "step(batch) ran no captured graph"
    ops = [op for i in range(len(recorder)) for op in recorder.ops(i)]
    assert ops.count("linear") >= 2, "a linear layer runs outside the captured graphs"
    model = getattr(program, "model", None)
    assert model is not None and next(model.parameters()).grad is not None, (
        "step must still leave gradients in the parameters of `model`"
    )
    assert loss.numel() == 1, "step must still return the loss"
