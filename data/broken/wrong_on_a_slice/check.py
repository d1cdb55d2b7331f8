"""Is twice(x) right for every way in which a tensor can lie in memory?"""

import torch

from helpers.exercises import load_program


def check(program_source: str) -> None:
    """Raise AssertionError unless `twice` equals 2 * x on views of all kinds."""
    program = load_program(program_source)
    twice = getattr(program, "twice", None)
    assert callable(twice), "keep the name `twice`"
    x = torch.arange(24.0).reshape(4, 6)
    views = {
        "a matrix": x,
        "its transpose": x.t(),
        "every second column": x[:, ::2],
        "every second row of the transpose": x.t()[::2],
        "a block": x[1:3, 2:4],
        "no element": x[:0],
    }
    for name, view in views.items():
        assert torch.equal(twice(view), 2 * view), f"{name}, strides {view.stride()}: wrong"
    row = torch.arange(24.0)[:3].expand(4, 3)
    assert torch.equal(twice(row), 2 * row), "a row that is repeated with stride 0: wrong"
