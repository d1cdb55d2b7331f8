"""JupyterLab in a real browser: the first chapter, live lines of ranks, the stop button."""

import sys

import pytest
from browser import chromium
from lab_session import Reader, lab_server, tracked, wait_for
from nbformat import v4, write

from helpers import book, lab_prose

LIVE = """%%torchrun --nproc 2 --name live
import time

print("first", flush=True)
time.sleep(600)
print("last")"""
DIRECTIVES = (
    "```{exercise} Twice\n:label: ex-twice\n\nWrite it.\n```",
    "````{dropdown} Solution\n```python\nx = 1\n```\n````",
    "```{glossary}\nrank\n: A process.\n```",
    "See [{abbr}`rank (A process.)`](01_intro.ipynb).",
)


@pytest.fixture(scope="module")
def running_browser():
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def server(running_browser, tmp_path_factory):
    with lab_server(tmp_path_factory.mktemp("session")) as server:
        live = v4.new_notebook(
            cells=[
                *map(v4.new_markdown_cell, DIRECTIVES),
                v4.new_code_cell("%load_ext helpers\nimport sys\nprint(sys.executable)"),
                v4.new_code_cell(LIVE),
            ],
            metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
        )
        write(live, server.root / "lab" / "99_live.ipynb")
        yield server


@pytest.fixture
def reader(running_browser, server):
    """At the end nothing was fetched from elsewhere, and the browser's console holds no error."""
    reader = Reader(running_browser, server)
    yield reader
    reader.page.close()
    assert reader.elsewhere == []
    assert reader.errors == []


def test_first_chapter_opens_by_double_click_and_runs_to_its_end(server, reader):
    before = tracked(server.root)
    first = book.chapters()[0]
    name = f"01_{first.rpartition('/')[2]}.ipynb"
    reader.open(name)
    title = lab_prose.title((server.root / "chapters" / f"{first}.md").read_text())
    assert reader.page.locator(".jp-MarkdownCell h1").first.inner_text().startswith(title)
    reader.run_all()
    wait_for(reader.finished, reader.printed)
    assert reader.outputs("error") == []
    assert f"_build/cells/{first}/" in reader.printed()  # the copy is known as its chapter
    assert "[rank 1] " in reader.printed()
    assert tracked(server.root) == before


def test_ranks_print_as_they_go_and_stop_leaves_none(server, reader):
    reader.open("99_live.ipynb")
    reader.run_all()
    output = reader.page.locator(".jp-CodeCell").last.locator(".jp-OutputArea")
    for rank in range(2):
        output.get_by_text(f"[rank {rank}] first").wait_for()
    assert reader.page.locator(".jp-CodeCell").last.get_by_text("[*]:").is_visible()
    assert sys.executable in reader.printed()
    assert len(server.processes(of_jobs=True)) >= 3

    reader.press_stop()
    output.get_by_text("KeyboardInterrupt").first.wait_for()
    wait_for(lambda: not server.processes(of_jobs=True), lambda: "ranks outlived the stop")
    assert "last" not in reader.printed()


def test_directives_are_rendered(reader):
    reader.open("99_live.ipynb")
    cells = reader.page.locator(".jp-MarkdownCell")
    cells.nth(0).get_by_text("Exercise 1").wait_for()
    solution = cells.nth(1).locator("details")
    assert not solution.get_by_text("x = 1").is_visible()
    solution.locator("summary").click()
    solution.get_by_text("x = 1").wait_for()
    assert cells.nth(2).locator("dt").inner_text() == "rank"
    cells.nth(3).locator("a abbr").hover()
    reader.page.get_by_text("A process.").last.wait_for()
    cells.nth(3).locator("a").click()
    reader.page.locator(".lm-TabBar-tab").get_by_text("01_intro.ipynb").wait_for()
