"""The script of a distributed cell: what it gets and gives, how it reads, where it came from."""

from textwrap import dedent

import pytest
from slices import recorded, refuses, run, sliced, value

from helpers.slicing import indented, slice_cell


def test_pushed_names_reach_the_body_and_functions():
    pushed, pulled = {"x": 3, "y": 4}, {}
    cells = ["x = input()\ny = 0", "def f(): return x"]
    script = sliced("r = f() + y", *cells, push=("x", "y"), pull=("r",))
    assert run(script, pushed, pulled)["r"] == 7
    assert pulled == {"r": 7}
    assert "y = 0" not in script.text
    assert run(sliced("r = x", "x = input()", push=("x",)), pushed)["r"] == 3


def test_a_pushed_name_comes_too_late_for_a_default():
    says = ["`f` (cell 2) reads `x` as soon as it is defined", "Define it in this cell"]
    refuses("f()", "x = input()", "def f(a=x): return a", push=("x",), says=says)


def test_a_pulled_name_must_be_set():
    refuses("x = 1", pull=("r",), says="`--pull r`: this cell never sets `r`")
    sliced("if 1:\n    r = 1", pull=("r",))
    sliced("def f():\n    global r\n    r = 1\nf()", pull=("r",))


def test_the_script_reads_well_and_knows_where_its_lines_come_from():
    cells = [
        "import math\nimport os, json\nfrom torch import nn  # layers",
        "# how wide\nD = 8  # features\n\nH = D * 2\nH += 1",
        "def f(x):\n\n    return math.sqrt(x) + D\n\nprint('no')\nclass N(nn.Module):\n    pass",
    ]
    script = slice_cell("print(f(H), N)\nb = a\n\n", recorded(*cells), ("a",), ("b",), number=4)
    assert script.text == dedent("""\
        import math
        from torch import nn


        # from cell 2
        # how wide
        D = 8  # features
        H = D * 2
        H += 1


        # from cell 3
        def f(x):

            return math.sqrt(x) + D


        class N(nn.Module):
            pass


        if __name__ == "__main__":
            import helpers.ranks

            (a,) = helpers.ranks.begin("a")

            print(f(H), N)
            b = a

            helpers.ranks.end(globals(), "b")
        """)
    lines = script.text.split("\n")
    origins = {lines[line - 1].strip(): origin for line, origin in script.origins.items()}
    assert origins == {
        "import math": (1, 1),
        "from torch import nn": (1, 3),
        "# how wide": (2, 1),
        "D = 8  # features": (2, 2),
        "H = D * 2": (2, 4),
        "H += 1": (2, 5),
        "def f(x):": (3, 1),
        "return math.sqrt(x) + D": (3, 3),
        "class N(nn.Module):": (3, 6),
        "pass": (3, 7),
        "print(f(H), N)": (4, 2),
        "b = a": (4, 3),
    }


def test_strings_and_continuations_survive_indentation():
    body = 'r = """a\n  b\n\n{x}"""\ns = f"""{r}\n c{1 +\n 1}"""\nt = (1,\n2)\nu = \'a\\\n b\'\nv = 1 + \\\n2\n'
    plain: dict = {}
    exec(body, plain)
    ours = run(sliced(body))
    assert [ours[n] for n in "rstuv"] == [plain[n] for n in "rstuv"]
    assert indented("a\n\n\tb") == "    a\n\n    \tb"


def test_a_body_with_a_guard_and_future_imports_of_its_own():
    body = """
        from __future__ import annotations
        def f(x: Missing): return 1
        if __name__ == "__main__":
            r = f(2)
    """
    script = sliced(body)
    assert script.text.startswith("from __future__ import annotations\n")
    assert run(script)["r"] == 1


def test_future_imports_of_an_earlier_cell_hold_for_the_script():
    cells = ["from __future__ import annotations", "def f(x: Missing): return 2"]
    assert value("r = f(1)", *cells) == 2
    refuses("f(1)", *cells[1:], says="`Missing`, which `f` (cell 1) needs")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("x = 1\nfor x in", "Line 3 of this cell is not Python (invalid syntax): `for x in`"),
        ("x = 1\n%time x", "no magics"),
        ("!ls", "no magics"),
        ("x = 1\nreturn x", "Ranks cannot run line 3 of cell 7: 'return' outside function"),
        ("import asyncio\nawait asyncio.sleep(0)", "line 3 of cell 7: 'await' outside function"),
    ],
)
def test_a_body_that_no_script_can_hold(body, says):
    refuses(body, number=7, says=says)


def test_an_import_gives_way_to_a_later_definition_and_the_other_way_round():
    assert value("r = f()", "from os import getpid as f", "def f(): return 1") == 1
    cells = ["def f(): return 1", "def g(x=f()): return x", "from math import floor as f"]
    assert value("r = g(), f(2.5)", *cells) == (1, 2)
