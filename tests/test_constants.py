"""What is a constant that ranks may repeat, what is data, and what the body makes itself."""

import pytest
from slices import recorded, refuses, run, sliced, value

from helpers.cells import RecordedCell
from helpers.paths import BookError
from helpers.slicing import slice_cell

CONSTANTS = {
    "X = 1.5": 1.5,
    "X: int = 3": 3,
    "X, (Y, *Z) = 1, (2, 3, 4)": 1,
    "A = B = 2\nX = A * B": 4,
    "D = 8\nX = {'d': D, 'h': [D // 2, (D, -D)]}": {"d": 8, "h": [4, (8, -8)]},
    "N = 'a'\nX = f'{N}-{1:03d}'": "a-001",
    "C = {'lr': 0.1}\nX = C['lr'] * 2 if C else None": 0.2,
    "X = [2**i for i in range(3) if i]": [2, 4],
    "X = max(3, len('four')) + sum([1, 2])": 7,
    "X = 'a b'.split()": ["a", "b"],
    "import math\nX = math.pi > 3 and not False": True,
    "class A:\n    size = 3\nX = A.size": 3,
    "L = [1, 2, 3]\nX = L[1:]": [2, 3],
    "X = b'a' + bytes([66])": b"aB",
}


@pytest.mark.parametrize("cell", CONSTANTS)
def test_pure_constants_are_carried(cell):
    assert value("r = X", cell) == CONSTANTS[cell]


@pytest.mark.parametrize(
    "cell",
    [
        "import torch\nX = torch.device('cpu')",
        "def make(): return 1\nX = make()",
        "data = open('f')\nX = data",
        "for X in range(3): pass",
        "with open('f') as X: pass",
        "print(X := 3)",
        "X = 1\nfor i in range(2): X += i",
        "X = 1\nX = input()",
        "X = [1]\nX[0] = input()",
        "import os\ntry:\n    X = os.getpid()\nexcept OSError:\n    X = 0",
        "len = input\nX = len('a')",
        "x = input()\nX = [x]",
        "match input():\n    case {'a': _, **X}: pass",
    ],
)
def test_what_a_call_or_a_loop_made_is_data(cell):
    message = refuses("r = X", cell, says=["`X`", "cell 1", "`--push X`"])
    assert "this cell needs" in message


def test_a_refusal_says_who_needs_the_name_and_where_it_was_made():
    cells = ["import torch", "model = torch.nn.Linear(2, 2)", "def f(x): return model(x)"]
    refuses("f(1)", *cells, says=[
        "`model`, which `f` (cell 3) needs, is made in cell 2, line 1: `model = torch.nn.Linear(2, 2)`",
        "`--push model`",
    ])  # fmt: skip


def test_only_what_is_needed_is_carried():
    script = sliced("print(f())", "import torch, matplotlib", "A = 1\nB = 2", "def f(): return B")
    assert "torch" not in script.text
    assert "A = 1" not in script.text


@pytest.mark.parametrize(
    "body", ["r = 1", "import math as r", "def r(): pass", "for r in 'a': pass"]
)
def test_names_that_the_body_binds_are_not_needed(body):
    assert "# from cell" not in sliced(body + "\nprint(r)", "r = 5").text


@pytest.mark.parametrize(
    "body",
    ["r = r + 1", "r += 1", "s = [r for r in 'a']\nr = r + 1", "print(r)\nr = 6", "if r:\n    r = 6", "r = [r for _ in 'a'][0] + 1",
     "class r(type(r)): pass", "for r in [r + 1]: pass", "def f(a=r): pass\nr = 6"],
)  # fmt: skip
def test_names_that_the_body_reads_first_are_needed(body):
    assert "r = 5" in sliced(body, "r = 5").text
    assert run(sliced(body, "r = 5"))["r"] != 5
    refuses(body, "r = input()", says="--push r")


@pytest.mark.parametrize(
    "body",
    ["for r in 'ab': print(r)", "with open('f') as r: r.read()", "def r(): return r()", "(r := 1) + r",
     "try: pass\nexcept OSError as r: print(r)", "r = 1\ndef f(): return r", "def f():\n    r = 1\n    r",
     "print([r for r in 'ab'])", "f = lambda r: r", "def f():\n    global r\n    r = 1\nf()",
     "match 1:\n    case [r, *_]: print(r)"],
)  # fmt: skip
def test_names_bound_before_they_are_read_are_not_needed(body):
    assert "# from cell" not in sliced(body, "r = input()").text


def test_a_value_changed_after_its_cell_is_data():
    cells = ["import torch\nCFG = {'lr': 1}\nNAN = float('nan')\nACTS = [lambda x: x]"]
    unchanged = {"CFG": {"lr": 1}, "NAN": float("nan"), "ACTS": [lambda x: x]}
    sliced("CFG, NAN, ACTS", *cells, namespace=unchanged)
    for now in ({"lr": 2}, object()):
        refuses("CFG", *cells, namespace={"CFG": now}, says=["cell 1", "`--push CFG`"])
    sliced("CFG", *cells, "CFG['lr'] = 2", namespace={"CFG": {"lr": 2}})


def test_pulled_names_are_data_from_then_on():
    cells = [*recorded("losses = [1]"), RecordedCell(2, "", data=("losses",))]
    with pytest.raises(BookError, match=r"`losses`.* was pulled by cell 2.*--push losses"):
        slice_cell("print(losses)", cells)


def test_a_name_defined_nowhere():
    says = "`nothing`, which this cell needs, is not defined in any cell"
    assert "--push" not in refuses("print(nothing)", "x = 1", says=says)
    refuses("nothing()", "def nothing(): pass", "del nothing", says=says)
    refuses("print(nothing)", says="--push nothing", namespace={"nothing": 1})


@pytest.mark.parametrize("name", ["display", "get_ipython"])
def test_what_only_a_notebook_has(name, monkeypatch):
    monkeypatch.setattr("builtins." + name, print, raising=False)
    refuses(f"{name}(1)", says=[f"`{name}`", "only in a notebook", "--pull"])
