"""What a copy for JupyterLab holds: what is blank, what is folded, and where links lead."""

import subprocess
import sys

import pytest
from conftest import cell

from helpers import book
from helpers.lab_copy import blank, empty_guesses, lab_notebook
from helpers.lab_prose import LabProse
from helpers.paths import BookError

SOLUTION = """def double(x):
    ### BEGIN SOLUTION
    return 2 * x
    ### END SOLUTION"""
EXERCISE = (
    "```{exercise} Twice\n:label: ex-double\n\nWrite `double`.\n```\n\n"
    "```{solution-start} ex-double\n:class: dropdown\n```",
    cell(SOLUTION, "solution"),
    "Because.\n\n```{solution-end}\n```\n\nNow check.",
    cell('with exercise("ex-double"):\n    assert double(2) == 4', "exercise-check"),
    "## After it",
)


def cells_of(copy, key: str = "a"):
    """(type, source, metadata of JupyterLab) of the cells below the first one of a page's copy."""
    notebook = lab_notebook(book.read(key), str)
    return [(c.cell_type, c.source, c.metadata.get("jupyter", {})) for c in notebook.cells[1:]]


def test_solution_is_blank_and_folded_behind_its_check(book_copy):
    book_copy.page("a", "# A", *EXERCISE)
    kinds, sources, _ = zip(*cells_of(book_copy), strict=True)
    exercise, answer, now_check, check, solution, after = sources
    assert kinds == ("markdown", "code", "markdown", "code", "markdown", "markdown")
    assert exercise.startswith("# A\n\n```{exercise} Twice")
    assert answer == 'def double(x):\n    raise NotImplementedError("your turn")'
    assert check.startswith('with exercise("ex-double")')
    assert solution == (
        "````{dropdown} Solution\n```python\ndef double(x):\n    return 2 * x\n```\n\nBecause.\n````"
    )
    assert (now_check, after) == ("Now check.", "## After it")
    assert "solution-" not in "".join(sources)


def test_blank_of_a_class_is_empty():
    source = "class A(B):\n    x = 1\n    ### BEGIN SOLUTION\n    y = 2\n    ### END SOLUTION"
    assert blank(source, "here") == "class A(B):\n    x = 1\n    ...  # your turn"


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("### BEGIN SOLUTION\nx = 1\n### END SOLUTION", "outside a function"),
        ("def f():\n    return 1", "enclose the part"),
        (SOLUTION + "\n    ### BEGIN SOLUTION", "enclose the part"),
        ("%%torchrun\n" + SOLUTION, "begins with a magic"),
        ("x = [\n### BEGIN SOLUTION\n1\n### END SOLUTION\n]", "not Python without"),
    ],
)
def test_blank_that_would_stop_run_all_is_refused(source, fault):
    with pytest.raises(BookError, match=fault):
        blank(source, "a, cell 1")


def test_guesses_are_empty(book_copy):
    book_copy.page("a", cell('predict("a", 3)'))
    assert cells_of(book_copy) == [("code", 'predict("a", ...)', {})]
    source = '%load_ext helpers\npredict("größe", 3 * (1 + 1)); predict(\n    "b", guess=[1,\n  2])\nx.predict("c", 3)'
    assert empty_guesses(source) == (
        '%load_ext helpers\npredict("größe", ...); predict(\n    "b", guess=...)\nx.predict("c", 3)'
    )


def test_what_the_site_hides_is_folded(book_copy):
    book_copy.page(
        "a", cell("1", "hide-input"), cell("2", "remove-cell"), cell("3", "skip-lab"), cell("4")
    )
    assert cells_of(book_copy) == [
        ("code", "1", {"source_hidden": True}),
        ("code", "2", {"source_hidden": True, "outputs_hidden": True}),
        ("code", "4", {}),
    ]


def test_first_cell_says_how_to_get_helpers(book_copy, tmp_path):
    book_copy.page("a", cell("1"))
    first = lab_notebook(book.read("a"), str).cells[0].source
    for options, code in (([], 0), (["-I", "-S"], 1)):  # -S: without site-packages, so without us
        done = subprocess.run(
            [sys.executable, *options, "-c", first], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == code, done.stderr
    assert "make lab" in done.stderr and "pip install" in done.stderr


PAGES = {
    "intro": "# Start here\n",
    "part/one": "# One: the first\n",
    "glossary": "# Words\n\n```{glossary}\nrank\n  A process\n  of {doc}`part/one`, (`one`).\n\nring\n  All.\n```\n",
}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a {term}`rank`", "a [{abbr}`rank (A process of One: the first, [one].)`](3.ipynb)"),
        ("{term}`Rings <ring>`", "[{abbr}`Rings (All.)`](3.ipynb)"),
        ("{doc}`/intro` {doc}`this <one>`", "[Start here](1.ipynb) [this](2.ipynb)"),
        ("[](../intro.md) [x](one.md#y)", "[Start here](1.ipynb) [x](2.ipynb)"),
        ("[only there](status), [out](https://a.b/c)", "only there, [out](https://a.b/c)"),
        ("`[x](one.md)` ``{term}`rank` ``", "`[x](one.md)` ``{term}`rank` ``"),
        ("```python\nf[x](one)\n```\n", "```python\nf[x](one)\n```\n"),
        (":::{note}\n[](one.md)\n:::\n", ":::{note}\n[One: the first](2.ipynb)\n:::\n"),
        (
            "```{dropdown} A\nx\n```\n\n{doc}`one`\n\n```{dropdown} B\n{doc}`one`\n```\n",
            "```{dropdown} A\nx\n```\n\n[One: the first](2.ipynb)\n\n"
            "```{dropdown} B\n[One: the first](2.ipynb)\n```\n",
        ),
    ],
)
def test_prose_leads_to_the_copies(text, shown):
    prose = LabProse(PAGES, {"intro": "1.ipynb", "part/one": "2.ipynb", "glossary": "3.ipynb"})
    assert prose(text, "part/one") == shown


def test_glossary_becomes_a_definition_list():
    shown = LabProse(PAGES, dict.fromkeys(PAGES, "x.ipynb"))(PAGES["glossary"], "glossary")
    assert (
        "\nrank\n: A process\n  of [One: the first](x.ipynb), (`one`).\n\nring\n: All.\n" in shown
    )
