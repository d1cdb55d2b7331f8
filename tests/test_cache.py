"""The parts of a chapter's key, and what is kept of a run."""

from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
from nbformat import v4

from helpers import cache
from helpers.book import Cell, Chapter


def chapter(key="part/one", *sources, tags=(), kernel="python3"):
    cells = [Cell(n, 10 * n, source, tuple(tags)) for n, source in enumerate(sources, 1)]
    front = {"kernelspec": {"name": kernel}}
    return Chapter(key, Path(f"{key}.md"), front, cells, v4.new_notebook())


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty book with three lessons, each a file of that name."""
    for name in ("RUNS", "DATA", "CHAPTERS"):
        monkeypatch.setattr(cache if name == "RUNS" else cache.paths, name, tmp_path / name)
        (tmp_path / name).mkdir()
    for stem in ("one", "two", "three"):
        (tmp_path / "CHAPTERS" / f"{stem}.md").touch()
    cache.inventory.cache_clear()
    yield tmp_path
    cache.inventory.cache_clear()


def parts(one, lessons=(), parameters=None):
    known = {lesson.key: lesson for lesson in lessons}
    return cache.key_parts(one, parameters or {}, known.__getitem__)


def changed(old, new):
    return {name for name in old if old[name] != new[name]}


def test_each_part_of_the_key_changes_with_its_own_cause(place):
    base = parts(chapter("one", "x = 1"))
    assert changed(base, parts(chapter("one", "x = 1"))) == set()
    assert changed(base, parts(chapter("one", "x = 2"))) == {"its code"}
    assert changed(base, parts(chapter("one", "x = 1", tags=["export"]))) == {"its code"}
    assert changed(base, parts(chapter("one", "x = 1", kernel="other"))) == {"its code"}
    assert changed(base, parts(chapter("one", "x = 1"), parameters={"nproc": 4})) == {"parameters"}


def test_line_numbers_and_prose_are_not_in_the_key(place):
    one = chapter("one", "x = 1")
    moved = replace(one, cells=[replace(one.cells[0], line=99)])
    moved = replace(moved, notebook=v4.new_notebook(cells=[v4.new_markdown_cell("more words")]))
    assert changed(parts(one), parts(moved)) == set()


def test_lessons_count_also_through_other_lessons(place):
    one = chapter("one", "from helpers.lessons.two import f")
    two = chapter("two", "%%torchrun --nproc 2\nfrom helpers.lessons.three import g")
    three, edited = chapter("three", "def g(): ..."), chapter("three", "def g(): return 1")
    assert changed(parts(one, [two, three]), parts(one, [two, edited])) == {"a lesson it imports"}


def test_lessons_that_import_each_other_end(place):
    one = chapter("one", "import helpers.lessons.two")
    two = chapter("two", "import helpers.lessons.one")
    parts(one, [one, two])


def test_import_of_no_chapter_says_so(place):
    with pytest.raises(cache.BookError, match=r"no chapter is called four\.md"):
        parts(chapter("one", "import helpers.lessons.four"))


def test_stored_run_stands_until_a_part_or_a_read_row_changes(place, monkeypatch):
    (place / "DATA" / "links.yml").write_text("a")
    assert cache.why_stale("part/one", {"helpers": "1"}) == "not executed before"
    cache.store("part/one", v4.new_notebook(), {"helpers": "1"}, [("data", "links.yml")])
    assert cache.why_stale("part/one", {"helpers": "1"}) is None
    assert cache.why_stale("part/one", {"helpers": "2"}) == "helpers changed"
    (place / "DATA" / "links.yml").write_text("b")
    cache.inventory.cache_clear()
    assert cache.why_stale("part/one", {"helpers": "1"}) == "data links.yml changed"
    (place / "DATA" / "links.yml").unlink()
    cache.inventory.cache_clear()
    assert cache.why_stale("part/one", {"helpers": "1"}) == "data links.yml changed"


ROW = (
    "- {{id: {0}, article: A, subject: s, claim: c, verdict: '{1}', what_happens: w, "
    "check: k, needs: nothing}}\n"
)


def test_a_claim_is_a_dependency_row_by_row(place):
    claims = place / "DATA" / "claims.yml"
    claims.write_text(ROW.format("A-1", "holds") + ROW.format("A-2", "holds"))
    before = cache.inventory()
    cache.inventory.cache_clear()
    claims.write_text(ROW.format("A-1", "holds") + ROW.format("A-2", "false"))
    after = cache.inventory()
    assert {use for use in after if after[use] != before[use]} == {
        ("claim", "A-2"),
        ("data", "claims.yml"),
    }


def test_broken_key_file_is_no_key(place):
    cache.store("part/one", v4.new_notebook(), {}, [])
    (place / "RUNS" / "part" / "one.key.json").write_text('{"parts"')
    assert cache.why_stale("part/one", {}) == "not executed before"


def test_key_without_its_notebook_is_no_run(place):
    cache.store("part/one", v4.new_notebook(), {}, [])
    cache.run_path("part/one").unlink()
    assert cache.why_stale("part/one", {}) == "not executed before"


def test_store_that_fails_leaves_no_key_for_another_run(place, monkeypatch):
    cache.store("part/one", v4.new_notebook(), {}, [])
    monkeypatch.setattr(nbformat, "writes", lambda notebook: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        cache.store("part/one", v4.new_notebook(), {}, [])
    assert cache.why_stale("part/one", {}) == "not executed before"


def test_write_atomic_leaves_the_old_file_or_the_new_one(tmp_path):
    path = tmp_path / "deep" / "file.txt"
    cache.write_atomic(path, "old")
    with pytest.raises(UnicodeEncodeError):
        cache.write_atomic(path, "half of the new one \udc80")
    assert path.read_text() == "old"
    assert [p.name for p in path.parent.iterdir()] == ["file.txt"]


def test_missing_run_says_what_to_do(place):
    with pytest.raises(cache.BookError, match="make book"):
        cache.load("part/one")


def test_missing_compiler_says_what_to_do(monkeypatch):
    monkeypatch.setattr(cache.devices, "compiler", lambda: None)
    cache.environment.cache_clear()
    with pytest.raises(cache.BookError, match="apt install g"):
        cache.environment()
