"""What a distributed cell knows of the cells that ran before it in the notebook."""

import pytest
from conftest import cell as md_cell
from IPython.core.interactiveshell import InteractiveShell
from shells import Jobs, Notebook

from helpers import magic


@pytest.fixture
def notebook(monkeypatch):
    return Notebook(monkeypatch)


@pytest.fixture
def jobs(monkeypatch):
    return Jobs(monkeypatch)


def test_definitions_come_from_the_last_execution_that_succeeded(notebook, jobs):
    notebook.ran("def f(): return 'first'", "def f(): return 'second'")
    notebook.failed("def f(): return 'third'\n1 / 0")
    notebook.failed("def f() return 'fourth'")
    notebook.ran("%%torchrun\nf()")
    assert "second" in jobs.seen[0].script.text
    assert jobs.seen[0].script.text.count("def f") == 1


def test_cells_count_with_history_off_as_under_nbval(notebook, jobs):
    notebook.shell.run_cell("def f(): return 1", store_history=False)
    notebook.shell.run_cell("%%torchrun\nf()", store_history=False)
    assert "def f(): return 1" in jobs.seen[0].script.text


def test_loading_twice_records_once(notebook, jobs):
    magic.register(notebook.shell)
    notebook.ran("x = 1")
    assert notebook.shell.torchrun_recorder is notebook.recorder
    assert [c.source for c in notebook.recorder.cells] == ["x = 1"]


def test_the_cell_that_loads_the_extension_counts(notebook, jobs):
    notebook.shell = InteractiveShell()
    notebook.shell.user_ns["load"] = lambda: magic.register(notebook.shell)
    notebook.ran("load()\ndef f(): return 1", "%%torchrun\nf()")
    assert "# from cell 1\ndef f()" in jobs.seen[0].script.text


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("\n \n%load_ext autoreload\ndef f(): pass", 4),
        ("!true \\\n  'a'\nx = !true\ndef f(): pass", 4),
        ("%%time\n\ndef f(): pass", 3),
        ("%%capture out\ndef f(): pass", 2),
        ("f = 1\n%time f = 2\n\ndef f(): pass;", 4),
    ],
)
def test_magics_keep_the_lines_of_a_cell(source, line, notebook, jobs):
    notebook.ran(source, "%%torchrun\nf()")
    (job,) = jobs.seen
    text = job.script.text.split("\n")
    number = next(n for n, t in enumerate(text, 1) if t.startswith("def f"))
    assert job.script.origins[number] == (1, line)


def test_what_another_magic_ran_elsewhere_defines_nothing(notebook, jobs):
    notebook.ran("%%bash\ntrue", "%%torchrun\ndef f(): pass")
    notebook.refuses("%%torchrun\nf()", "`f`, which this cell needs, is not defined in any cell")


def test_the_chapter_gives_numbers_tags_and_lines(notebook, jobs, book_copy, monkeypatch):
    same = md_cell("def f(): return 1")
    setup = md_cell("import os\nos.environ['A'] = '1'", "torchrun-setup")
    body = "%%torchrun --name me\nprint(f())"
    book_copy.page("part/talk", md_cell("'unused'"), same, setup, "# Prose", same, md_cell(body))
    monkeypatch.setenv("BOOK_CHAPTER", "part/talk")
    sources = ["def f(): return 1", "import os\nos.environ['A'] = '1'", "def f(): return 1", body]
    notebook.ran(*sources)
    (job,) = jobs.seen
    assert job.chapter == "part/talk"
    assert [c.number for c in notebook.recorder.cells[:3]] == [2, 3, 4]
    text = job.script.text.split("\n")
    assert text[:2] == ["# from cell 3", "import os"]
    assert job.script.origins[text.index("    print(f())") + 1] == (5, 2)
    first = notebook.recorder.cells[0]
    page = (book_copy.root / "chapters/part/talk.md").read_text().split("\n")
    assert page[first.line_in_md - 1] == "def f(): return 1"


def test_tags_of_a_notebook_come_with_its_metadata(notebook, jobs):
    notebook.ran("import random; random.seed(1)", tags=["torchrun-setup"])
    notebook.ran("import random; random.seed(2)", "%%torchrun\n1")
    assert "seed(1)" in jobs.seen[0].script.text
    assert "seed(2)" not in jobs.seen[0].script.text
