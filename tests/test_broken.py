"""Every program in data/broken and a cosmetic change are rejected, and every cure is accepted.

They are rejected for what `symptom.txt` says, a pattern: not for a name that a library has dropped.
Where a page judges the program or the cure, its build fails if that is wrong, and it is not done again.
"""

import ast
import re

import pytest

from helpers import book, broken, paths
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


def rejects(name, source):
    with pytest.raises(AssertionError, match=broken.symptom(name)):
        broken.load_check(name)(source)


def judged(source):
    """(name, whether it is the cure) of each call of `check` in a cell, also in a loop over names."""
    found = []

    def check(name, cure=False):
        found.append((name, cure))

    statements = ast.parse(source).body
    for statement in statements:
        names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
        if isinstance(statement, ast.If):  # a library that is not there is no reason to judge less
            statements += statement.body
        elif "check" in names and isinstance(statement, ast.Expr | ast.For):
            exec(ast.unparse(statement), {"check": check})
    return found


def judged_by_pages():
    """All pairs of `judged` in the book."""
    code = [cell.source for key in book.chapters() for cell in book.read(key).cells]
    calls = [source for source in code if "check(" in source and not source.startswith("%%")]
    return {pair for source in calls for pair in judged(source)}


def runnable(names):
    """Programs that need DeepSpeed are skipped by name where it is not installed."""
    for name in names:
        skip = why_no_deepspeed() if "deepspeed" in read(name, "program.py") else ""
        yield pytest.param(name, marks=[pytest.mark.skip(reason=skip)] if skip else [])


def each(names):
    return pytest.mark.parametrize("name", list(runnable(names)))


JUDGED = judged_by_pages()


@each(FOLDERS)
def test_the_check_rejects_a_cosmetic_change(name):
    cosmetic = read(name, "cosmetic.py")
    assert ast.dump(ast.parse(cosmetic)) != ast.dump(ast.parse(read(name, "program.py")))
    rejects(name, cosmetic)


@each(name for name in FOLDERS if {(name, False), (name, True)} - JUDGED)
def test_the_check_rejects_the_program_and_accepts_the_cure(name):
    rejects(name, read(name, "program.py"))
    if (name, True) not in JUDGED:
        broken.load_check(name)(read(name, "cure.py"))


@pytest.mark.parametrize(
    "other",
    sorted(paths.DATA.glob("broken/*/cure_*.py")),
    ids=lambda p: f"{p.parent.name}-{p.stem}",
)
def test_the_check_accepts_every_other_cure(other):
    broken.load_check(other.parent.name)(other.read_text(encoding="utf-8"))


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
