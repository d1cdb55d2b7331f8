"""The table of what ran: from the runs themselves, and honest about what did not run."""

import re
from pathlib import Path

import nbformat
import pytest
from nbformat import v4
from tiny_book import TinyBook

from helpers import tested
from helpers.book import Cell, Chapter

HERE = [["Python", "3.11.7"], ["torch", "2.13.0"], ["cores", "2"], ["GPUs", "none"]]
ECHO = "$ torchrun --standalone --nproc-per-node 2 _build/cells/a/b.py   # 2 ranks, {}\nhello\n"


def a_chapter(key, *sources):
    cells = [Cell(n, n, source, ()) for n, source in enumerate(sources, 1)]
    return Chapter(key, Path(f"{key}.md"), {}, cells, v4.new_notebook())


def a_run(*texts, ran_on=HERE, seconds=61.6):
    cells = [v4.new_code_cell(outputs=[v4.new_output("stream", text=text)]) for text in texts]
    ended = "2025-03-01T13:05:00+01:00"
    papermill = {"end_time": ended, "duration": seconds}
    return v4.new_notebook(cells=cells, metadata={"papermill": papermill, "ran_on": ran_on})


def rows(markdown):
    return [line.strip("| ").split(" | ") for line in markdown.splitlines() if "{doc}" in line]


def test_a_row_tells_when_where_how_long_and_how_much():
    chapter = a_chapter("part/one", "x = 1", "%%torchrun --nproc 2\nprint(1)")
    text = tested.runs_markdown(
        {"part/one": chapter}, {"part/one": a_run(ECHO.format("gloo on cpu"))}
    )
    assert rows(text) == [["{doc}`part/one`", "2", "1", "gloo on cpu", "62", "2025-03-01 12:05"]]
    assert "| torch | 2.13.0 |" in text and "| Python | 3.11.7 |" in text


def test_a_chapter_without_a_run_says_so():
    chapters = {key: a_chapter(key, "x") for key in ("one", "two")}
    text = tested.runs_markdown(chapters, {"two": a_run("no ranks here")})
    assert [row[3] for row in rows(text)] == ["not executed", "no ranks"]


def test_what_the_ranks_ran_with_is_what_they_printed_last():
    changed = ECHO.format("nccl on cuda") + "# ran with gloo on cuda\n"
    run = a_run(ECHO.format("gloo on cpu"), changed, ECHO.format("gloo on cpu"))
    text = tested.runs_markdown({"one": a_chapter("one")}, {"one": run})
    assert rows(text)[0][3] == "gloo on cpu, gloo on cuda"


def test_not_run_on_a_gpu_is_stated_where_there_was_none():
    chapters = {key: a_chapter(key, "x") for key in ("one", "two")}
    gpu = [*HERE[:-1], ["GPUs", "NVIDIA H200, CUDA_VISIBLE_DEVICES=all"]]
    both_cpu = {key: a_run("") for key in chapters}
    assert "Not run on a GPU" in tested.runs_markdown(chapters, both_cpu)
    one_gpu = both_cpu | {"two": a_run("", ran_on=gpu)}
    text = tested.runs_markdown(chapters, one_gpu)
    assert "Not run on a GPU" not in text and "NVIDIA H200" in text
    assert "| ran on | {doc}`one` |" in text and "| ran on | {doc}`two` |" in text
    assert "Not run on a GPU" not in tested.runs_markdown(chapters, {}), "nothing ran at all"


def test_this_machine_is_told_in_words():
    facts = dict(tested.this_machine())
    assert re.match(r"\d+\.\d+\.\d+", facts["torch"]) and re.match(r"3\.\d+", facts["Python"])
    assert int(facts["cores"]) > 0 and facts["GPUs"] and facts["C++ compiler"]
    assert all(isinstance(word, str) for pair in tested.this_machine() for word in pair)


def test_without_a_gpu_tool_there_is_no_gpu(monkeypatch):
    monkeypatch.setattr(tested.devices.shutil, "which", lambda name: None)
    assert ["GPUs", "none"] in tested.this_machine()


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A book of one chapter and the page with the table, executed and made into a site."""
    book = TinyBook(tmp_path_factory.mktemp("book"))
    book.chapter("part/one", "x = 1")
    book.page("how_tested", "# Tested", "<!-- runs -->", front="")
    book.toc("intro", "part/one", "how_tested")
    code, output = book.helpers("build")
    assert code == 0, output
    return book


def test_a_real_run_brings_all_that_the_table_tells(built):
    kept = nbformat.read(built.run_file("part/one"), 4).metadata
    assert kept["ran_on"] == tested.this_machine()
    page = (built.root / "_build/html/how_tested.html").read_text()
    assert 'href="part/one.html"' in page and f"{kept['papermill']['duration']:.0f}</p>" in page
    assert kept["papermill"]["end_time"][:10] in page


def test_the_site_has_a_page_for_addresses_that_are_not_there(built):
    html = built.root / "_build/html"
    page = (html / "404.html").read_text()
    body = page[page.index("<h1>No such page") :]
    assert 'action="search.html"' in body and 'name="q"' in body
    assert {"intro.html", "part/one.html", "how_tested.html"} <= set(
        re.findall(r'href="([^"#]+)"', body)
    )
    local = [a for a in re.findall(r'(?:href|src|action)="([^"#?]+)', page) if ":" not in a]
    assert [address for address in local if not (html / address).exists()] == []
    # Before anything is fetched, the page finds the folder that its links are relative to.
    assert page.index('document.createElement("base")') < page.index("<link")
