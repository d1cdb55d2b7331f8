"""Reference outputs: what is kept of a run, what nbval then compares, and what it would miss."""

import re
from pathlib import Path

import nbformat
import pytest
from nbformat import v4
from tiny_book import TinyBook

from helpers import outputs, paths
from helpers.book import Cell, Chapter

CHECK = ("nbval-check-output",)


def one_chapter(*tagged):
    cells = [Cell(n, n, source, tags) for n, (source, tags) in enumerate(tagged, 1)]
    front = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    return Chapter("part/one", Path("one.md"), front, cells, v4.new_notebook())


def ran(*cells):
    """A run whose cells have these (source, outputs)."""
    made = [v4.new_code_cell(s, outputs=o, execution_count=7) for s, o in cells]
    return v4.new_notebook(cells=[v4.new_markdown_cell("words"), *made])


RICH = v4.new_output("execute_result", data={"text/plain": "3", "text/html": "<b>3</b>"})
IMAGE = v4.new_output("display_data", data={"image/png": "aGk="})
STREAM = v4.new_output("stream", text="hello\n")


def test_reference_keeps_text_of_checked_cells_and_nothing_else():
    chapter = one_chapter(("f()", CHECK), ("g()", ()))
    run = ran(("f()", [RICH, IMAGE, STREAM]), ("g()", [STREAM]))
    checked, other = outputs.reference(chapter, run).cells
    assert [o.get("data") or o.text for o in checked.outputs] == [{"text/plain": "3"}, "hello\n"]
    assert checked.execution_count == 1, "nbval compares nothing in a cell that never ran"
    assert (other.source, other.outputs, other.execution_count) == ("g()", [], None)


def test_reference_is_the_same_file_each_time():
    chapter, run = one_chapter(("f()", CHECK)), ran(("f()", [RICH]))
    first, second = (nbformat.writes(outputs.reference(chapter, run)) for _ in range(2))
    assert first == second


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """One chapter and its reference; `edit` changes the reference's cell."""
    chapter = one_chapter(("f()", CHECK))
    monkeypatch.setattr(outputs, "REFERENCES", tmp_path)
    monkeypatch.setattr(outputs.book, "chapters", lambda: ["part/one"])
    monkeypatch.setattr(outputs.book, "read", lambda key: chapter)
    path = tmp_path / "part" / "one.ipynb"

    def edit(**changes):
        reference = outputs.reference(chapter, ran(("f()", [RICH])))
        reference.cells[0].update(changes)
        path.parent.mkdir(exist_ok=True)
        path.write_text(nbformat.writes(reference))
        return path

    edit()
    return edit


def test_whole_references_have_no_problem(stored):
    assert outputs.problems() == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"source": "g()"}, "other source"),
        ({"metadata": {"tags": []}}, "other source or tags"),
        ({"outputs": []}, "has no output"),
        ({"execution_count": None}, "has no output"),
    ],
)
def test_drifted_or_empty_references_are_problems(stored, changes, words):
    stored(**changes)
    assert len(outputs.problems()) == 1 and words in outputs.problems()[0]


def test_missing_and_stale_references_are_problems(stored):
    path = stored()
    path.rename(path.with_name("gone.ipynb"))
    assert outputs.problems() == [
        "part/gone: a reference without a chapter",
        "part/one: no reference",
    ]


def test_the_books_own_references_are_whole():
    assert outputs.problems() == [], "make outputs writes them"


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """A built book with accepted references; its second cell shows HTML, an image and text."""
    book = TinyBook(tmp_path_factory.mktemp("book"))
    shows = (
        "#tags: nbval-check-output\n"
        "from IPython.display import display\n"
        "print('$ torchrun at', os.getpid())\n"
        "display({'text/html': f'<i>{os.getpid()}</i>', 'text/plain': 'plain'}, raw=True)\n"
        "display({'image/png': 'aGk='}, raw=True)\n"
        "os.path.basename(os.environ['BOOK_CHAPTER'])"
    )
    book.chapter("part/one", "import os", shows, "open('scrap', 'w').close()\nos.getpid()")
    code, shown = book.helpers("outputs")
    assert code == 1 and "+  > plain" in shown and "make outputs ACCEPT=1" in shown
    assert not (book.root / "tests" / "outputs").exists(), "nothing is written unless accepted"
    assert book.helpers("outputs", "--accept")[0] == 0
    book.ran()
    return book


def test_replay_compares_without_running_anything(book):
    code, shown = book.helpers("check")
    assert code == 0 and "4 passed" in shown, shown
    assert book.ran() == []


def test_one_chapter_can_be_checked_and_a_name_that_is_none_is_refused(book):
    code, shown = book.helpers("check", "part/one")
    assert code == 0 and "4 passed" in shown, shown
    code, shown = book.helpers("check", "part/two")
    assert code == 1 and "No such chapter: part/two. There are: part/one" in shown


def test_live_kernel_gives_the_same_outputs(book):
    code, shown = book.helpers("check", "--live")
    assert code == 0 and "4 passed" in shown, shown
    assert book.ran() == ["part/one"]
    folder = book.root / "tests" / "outputs" / "part"
    assert [p.name for p in folder.iterdir()] == ["one.ipynb"], "cells run in a scratch folder"


def test_a_changed_reference_and_a_run_of_other_code_fail(book):
    path = "tests/outputs/part/one.ipynb"
    stored = (book.root / path).read_text()
    book.edit(path, '"plain"', '"planned"')
    book.edit(path, '"import os"', '"import  os"')
    code, shown = book.helpers("check")
    assert code == 1 and "2 failed, 2 passed" in shown
    assert "planned" in shown and "make book" in shown
    (book.root / path).write_text(stored)


def test_outputs_shows_what_changed_and_drops_what_is_gone(book):
    book.edit("chapters/part/one.md", "'plain'", "'simple'")
    gone = book.root / "tests/outputs/part/gone.ipynb"
    gone.write_text((book.root / "tests/outputs/part/one.ipynb").read_text())
    code, shown = book.helpers("outputs")
    assert (
        code == 1 and "-  > plain" in shown and "+  > simple" in shown and "old part/gone" in shown
    )
    assert book.helpers("outputs", "--accept")[0] == 0
    assert not gone.exists()
    code, shown = book.helpers("outputs")
    assert code == 0 and "up to date" in shown


def test_no_reference_holds_what_another_run_must_miss():
    """A warning names a file of the machine that made it; a log line, the time of day."""
    time = r"20\d\d-\d\d-\d\d|\b\d\d:\d\d:\d\d[,.\s\]]"
    # An absolute path, but for the kernel's own, which are alike everywhere.
    place = r"(?:(?<![\w.~/])|(?<=file://))/(?!sys/|proc/)(?:[\w.-]+/)+"
    of_one_run = re.compile(f"{time}|{place}")
    for path in sorted((paths.ROOT / "tests/outputs").rglob("*.ipynb")):
        cells = nbformat.read(path, 4).cells
        for output in (o for cell in cells for o in cell.get("outputs", [])):
            text = output.get("text") or output["data"]["text/plain"]
            loud = output.get("name") == "stderr" or of_one_run.search(text)
            assert not loud, f"{path.name}: {text}"


def test_print_that_came_in_pieces_is_one_output():
    pieces = [v4.new_output("stream", name=name, text=f"{name}\n") for name in ("stdout",) * 2]
    pieces += [v4.new_output("stream", name="stderr", text="w\n"), *pieces[:1]]
    found = [(output.name, output.text) for output in outputs.comparable(pieces)]
    assert found == [("stdout", "stdout\nstdout\n"), ("stderr", "w\n"), ("stdout", "stdout\n")]
