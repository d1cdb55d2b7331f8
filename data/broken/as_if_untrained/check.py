"""Does the served model have the trained weights?"""

import torch

from helpers.exercises import load_program


def check(program_source: str) -> None:
    """Raise AssertionError unless a plain, new model has the weights of the trained one."""
    program = load_program(program_source)
    served, model = getattr(program, "served", None), getattr(program, "model", None)
    assert served is not None and model is not None, "keep `model` and `served`"
    trained = getattr(model, "_orig_mod", model)
    assert type(served) is program.GPT and served is not trained, "`served` is a new, plain GPT"
    pairs = list(zip(trained.parameters(), served.parameters(), strict=True))
    same = sum(torch.equal(a, b) for a, b in pairs)
    assert same == len(pairs), f"{same} of {len(pairs)} weights are the trained ones"
    assert not any(a is b for a, b in pairs), "the weights must go through the file"
    assert program.before < 4, f"the model no longer trains: loss {program.before:.3f}"
