"""What a build executes again and what it does not, and what it says of a chapter that fails."""

import re

import pytest
from tiny_book import TinyBook


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """Built once; each test edits it and leaves it built."""
    book = TinyBook(tmp_path_factory.mktemp("book"))
    book.chapter("part/base", "#tags: export\ndef f(x):\n    return x + 1")
    book.chapter("part/uses", "from helpers.lessons.base import f\n\nf(1)", prose="Some prose.")
    book.chapter(
        "part/alone",
        'from helpers.paths import read_data\n\nprint(read_data("links.txt"))',
        "#tags: parameters\nsize = 'laptop'",
        "import psutil\nprint('ports:', len(psutil.Process().net_connections('tcp')))",
        "#tags: solution\n### BEGIN SOLUTION\nanswer = size\n### END SOLUTION\nanswer",
    )
    (book.root / "data" / "links.txt").write_text("four links")
    assert book.execute() == ["part/base", "part/uses", "part/alone"]
    return book


def test_no_port_is_chosen_before_it_is_bound(book):
    """A kernel opens one itself, for what its children print; TCP would take five more."""
    assert "ports: 1" in book.outputs("part/alone")


def test_nothing_changed_executes_nothing(book):
    assert book.execute() == []


def test_code_of_one_chapter_executes_it_alone(book):
    book.edit("chapters/part/uses.md", "f(1)", "f(2)")
    assert book.execute() == ["part/uses"]


def test_code_of_a_lesson_executes_those_that_import_it(book):
    book.edit("chapters/part/base.md", "x + 1", "x + 2")
    assert book.execute("part/base") == ["part/base"], "only what was named"
    assert book.execute() == ["part/uses"]
    assert '"4"' in book.outputs("part/uses")


def test_data_executes_the_chapter_that_read_it(book):
    (book.root / "data" / "links.txt").write_text("five links")
    assert book.execute() == ["part/alone"]
    (book.root / "data" / "unread.txt").write_text("nobody reads this")
    assert book.execute() == []


def test_parameter_executes_the_chapters_that_take_it(book):
    assert book.helpers("build", "--no-site", "--size", "workstation")[0] == 0
    assert book.ran() == ["part/alone"]
    assert "workstation" in book.outputs("part/alone")
    assert book.execute() == ["part/alone"]


def test_helpers_execute_all(book):
    book.edit("src/helpers/display.py", '"""One way', '"""The one way')
    assert book.execute() == ["part/base", "part/uses", "part/alone"]


def test_unknown_chapter_is_named(book):
    code, output = book.helpers("build", "part/bass")
    assert code == 1 and "part/bass" in output and "part/base" in output
    assert "Traceback" not in output


def test_prose_changes_the_site_and_executes_nothing(book):
    book.edit("chapters/part/uses.md", "Some prose.", "New words, and [base](base.md).")
    code, output = book.helpers("build")
    assert code == 0, output
    assert book.ran() == []
    html = book.root / "_build" / "html"
    page = (html / "part" / "uses.html").read_text()
    assert "New words" in page and 'href="base.html"' in page
    assert re.search(r"<pre><span></span>[2-5]\n</pre>", page), "the output of f is merged in"
    links = (book.root / "data" / "links.txt").read_text()
    alone = (html / "part" / "alone.html").read_text()
    assert links in alone and "SOLUTION" not in alone
    assert links in (html / "_sources" / "part" / "alone.ipynb").read_text()
    assert (html / "index.html").exists()


def test_failing_chapter_is_shown_and_not_kept(tmp_path):
    book = TinyBook(tmp_path)
    book.chapter("part/bad", "x = 1", "y = x / 0")
    book.chapter("part/good", "2 + 2")
    code, output = book.helpers("build")
    assert code == 1
    line = book.path("part/bad").read_text().split("\n").index("y = x / 0") + 1
    assert f"part/bad: cell 3 failed (chapters/part/bad.md, line {line})" in output
    assert "    y = x / 0" in output and "ZeroDivisionError: division by zero" in output
    assert "1 of 2 failed: part/bad" in output
    assert (book.root / "_build/failed/part/bad.ipynb").exists()
    assert not (book.root / "_build/html").exists(), "no site of half a book"
    assert book.ran() == ["part/bad", "part/good"], "the build goes on"
    assert book.helpers("build", "--no-site")[0] == 1
    assert book.ran() == ["part/bad"], "a failure is never cached, the rest is"


def test_dead_kernel_is_a_failure_with_a_reason(tmp_path):
    book = TinyBook(tmp_path)
    book.chapter("part/dies", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    code, output = book.helpers("build", "--no-site")
    assert code == 1
    assert "part/dies: cell 2 failed" in output and "kernel died" in output


def test_full_disk_is_one_sentence(tmp_path):
    book = TinyBook(tmp_path)
    book.chapter("part/good", "2 + 2")
    book.edit(
        "src/helpers/cache.py",
        "new.write_text(text",
        "raise OSError(28, 'No space left on device'); new.write_text(text",
    )
    code, output = book.helpers("build", "--no-site")
    assert code == 1
    assert output.strip().endswith("finished chapters are kept.") and "disk is full" in output
    assert "Traceback" not in output
