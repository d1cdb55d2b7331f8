"""Every program in data/broken: a cosmetic change is rejected, and a page judges program and cure.

The build fails where a page's check accepts the program or refuses the cure.
"""

import ast
import re

import pytest

from helpers import book, exercises, paths
from helpers.lessons.zero_stages import why_no_deepspeed

FOLDERS = sorted(path.name for path in (paths.DATA / "broken").glob("*/"))
CELL = re.compile(
    r"^(`{3,})\{code-cell\}[^\n]*\n(?:[^`]*?\n)??%%broken ([^\s]+)[^\n]*\n(.*?)\n\1$", re.M | re.S
)


def cells():
    """(page, name, program) of each %%broken cell of the book."""
    for page in sorted(paths.CHAPTERS.rglob("*.md")):
        for _, name, program in CELL.findall(page.read_text(encoding="utf-8")):
            yield page.stem, name, program


def read(name, file):
    return (paths.DATA / "broken" / name / file).read_text(encoding="utf-8")


def runnable():
    """All programs; those that need DeepSpeed are skipped by name where it is not installed."""
    for name in FOLDERS:
        skip = why_no_deepspeed() if "deepspeed" in read(name, "program.py") else ""
        yield pytest.param(name, marks=[pytest.mark.skip(reason=skip)] if skip else [])


@pytest.mark.parametrize("name", runnable())
def test_the_check_rejects_a_cosmetic_change(name):
    cosmetic = read(name, "cosmetic.py")
    assert ast.dump(ast.parse(cosmetic)) != ast.dump(ast.parse(read(name, "program.py")))
    with pytest.raises(AssertionError):
        exercises.load_check(name)(cosmetic)


def judged(source):
    """(name, whether it is the cure) of each call of `check` in a cell, also in a loop over names."""
    found = []

    def check(name, cure=False):
        found.append((name, cure))

    for statement in ast.parse(source).body:
        names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
        if "check" in names and isinstance(statement, ast.Expr | ast.For):
            exec(ast.unparse(statement), {"check": check})
    return found


def test_pages_judge_each_program_and_its_cure():
    cells = [cell.source for key in book.chapters() for cell in book.read(key).cells]
    sources = [source for source in cells if "check(" in source and source[0] != "%"]
    assert sorted({pair for source in sources for pair in judged(source)}) == [
        (name, cure) for name in FOLDERS for cure in (False, True)
    ]


def test_chapters_show_the_stored_programs_and_all_of_them():
    shown = list(cells())
    for page, name, program in shown:
        assert name in FOLDERS, f"{page}: there is no data/broken/{name}"
        assert program.strip() == read(name, "program.py").strip(), f"{page}: {name} differs"
    assert {name for _, name, _ in shown} == set(FOLDERS)


def test_the_pattern_finds_cells_with_and_without_options(book_copy):
    book_copy.page(
        "capture/x",
        "```{code-cell}\n%%broken one\nx = 1\n\ny = 2\n```",
        "```{code-cell} ipython3\n:tags: [skip-lab]\n\n%%broken two --expect ValueError\nz\n```",
        "```{code-cell}\nx = 1\n```",
        "```python\n%%broken three\nx\n```",
    )
    assert list(cells()) == [("x", "one", "x = 1\n\ny = 2"), ("x", "two", "z")]
