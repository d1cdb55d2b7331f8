"""Do a model and its refactored copy, with another order of layers, train to the same bits?"""

from helpers.exercises import load_program


def check(program_source: str) -> None:
    """Raise AssertionError unless the order was changed and all losses after the load agree."""
    program = load_program(program_source)
    orders = [
        [name for name, _ in getattr(program, which).named_parameters()]
        for which in ("model", "refactored")
    ]
    assert orders == [["up.weight", "down.weight"], ["down.weight", "up.weight"]], (
        "keep the refactoring: `model` has up and down, `refactored` down and up"
    )
    assert program.refactored is not program.model and len(program.old) == len(program.new) == 20
    assert len(set(program.old)) == 20, "the models no longer train"
    apart = [step for step, (a, b) in enumerate(zip(program.old, program.new)) if a != b]
    assert not apart, f"the losses differ from step {60 + apart[0]} on"
    states = program.optimizer.state[program.model.up.weight]
    assert states["step"] == 80, "the first optimizer must go on where it was"
