"""Ruff must reach the cells that start with a magic."""

import shutil

import pytest
from conftest import cell

from helpers import lint, paths

PYPROJECT = paths.ROOT / "pyproject.toml"


@pytest.fixture
def faults(book_copy):
    """Faults of a chapter with these cells, and then the chapter's lines."""
    shutil.copy(PYPROJECT, book_copy.root)
    book_copy.toc("one")

    def of(*cells, fix=False):
        path = book_copy.page("one", "# One", *map(cell, cells))
        found = lint.chapter_faults(fix)
        return found, path.read_text().split("\n")

    return of


def test_clean_cells_have_no_fault(faults):
    clean = "%%torchrun --nproc 2 --pull loss,step\nimport os\n\nloss = step = os.getpid()"
    assert faults("%load_ext helpers", clean, "print(loss, step)\nloss")[0] == []


def test_fault_in_the_body_of_a_distributed_cell_is_found_at_its_line(faults):
    found, lines = faults("x = 1", "%%torchrun --nproc 2\nimport os\n\nprint(undefined_name)")
    unused, undefined = sorted(found, key=lambda fault: "F821" in fault)
    assert unused.startswith(f"chapters/one.md:{lines.index('import os') + 1}: F401")
    assert undefined.startswith(f"chapters/one.md:{lines.index('print(undefined_name)') + 1}: F821")


def test_names_are_known_from_other_cells(faults):
    assert faults("import math", "%%torchrun --nproc 2\nprint(math.pi)")[0] == []


def test_other_languages_are_left_alone(faults):
    assert faults("%%bash\necho   $HOME", "%%broken slow\nimport  os")[0] == []


def test_unformatted_body_is_found_and_mended(faults):
    cells = ("%%torchrun --nproc 2\nx = [1,2]\nprint( x )", "y =  1\ny")
    found, _ = faults(*cells)
    assert len(found) == 2 and "+x = [1, 2]" in "".join(found)
    _, lines = faults(*cells, fix=True)
    text = "\n".join(lines)
    assert "%%torchrun --nproc 2\nx = [1, 2]\nprint(x)\n```" in text and "y = 1\ny\n```" in text


def test_a_cell_that_begins_with_a_comment_keeps_it(faults):
    _, lines = faults("# a comment\nx =  1\nx", fix=True)
    assert "# a comment\nx = 1\nx\n```" in "\n".join(lines)
