"""Makes the published pages from the chapters as they are and the outputs as they ran."""

import errno
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import nbformat

from helpers import book, book_map, ledger, paths, tested
from helpers.book import Chapter
from helpers.cache import write_atomic
from helpers.execute import executed_cells, without_colours
from helpers.finished_pages import mark_chinese, page_faults
from helpers.paths import BookError

SOURCE = paths.BUILD / "site-src"
WORK = paths.BUILD / "site-work"
HTML = paths.BUILD / "html"

SOLUTION_MARKER = re.compile(r"^[ \t]*### (BEGIN|END) SOLUTION[ \t]*\n?", re.MULTILINE)


def make_site(
    chapters: dict[str, Chapter],
    runs: dict[str, nbformat.NotebookNode],
    say: Callable[[str], None],
) -> None:
    """Stage, build with warnings as errors, check, and only then replace `_build/html`."""
    if bare := [key for key in chapters if key not in runs]:
        say(f"not executed, so without outputs on the site: {', '.join(bare)}")
    stage(chapters, runs)
    say("building the site")
    built = _run_jupyter_book()
    mark_chinese(built)
    if faults := page_faults(built, book.pages()):
        raise BookError("The site is not whole:\n" + "\n".join(faults))
    _replace(HTML, built)
    say(f"the book is at {(HTML / 'index.html').relative_to(paths.ROOT)}")


def stage(chapters: dict[str, Chapter], runs: dict[str, nbformat.NotebookNode]) -> None:
    """Lay out in `_build/site-src` exactly what jupyter-book is to see."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    shutil.copytree(paths.CHAPTERS, SOURCE, ignore=shutil.ignore_patterns("*.md", ".*"))
    shutil.copy(paths.ROOT / "_config.yml", SOURCE)
    # On the site a page's address is its key, without the folder it has in this repository.
    toc = (paths.ROOT / "_toc.yml").read_text("utf-8").replace("chapters/", "")
    write_atomic(SOURCE / "_toc.yml", toc)
    for key in book.pages():
        if key in chapters:
            page = merge(chapters[key], runs.get(key))
            for cell in page.cells:
                if cell.cell_type == "markdown":
                    cell.source = _published(cell.source, chapters, runs)
            write_atomic(SOURCE / f"{key}.ipynb", nbformat.writes(page))
        else:
            prose = (paths.CHAPTERS / f"{key}.md").read_text("utf-8")
            write_atomic(SOURCE / f"{key}.md", _published(prose, chapters, runs))


def _published(
    prose: str, chapters: dict[str, Chapter], runs: dict[str, nbformat.NotebookNode]
) -> str:
    """Markers filled in, and links to a chapter's `.md` led to the notebook that stands for it."""
    stems = "|".join(re.escape(key.rpartition("/")[2]) for key in chapters)
    link = rf"(\]\((?:[^)\s:]*/)?(?:{stems}))\.md(?=[)#])"
    filled = book_map.fill(
        prose,
        ledger=ledger.ledger_markdown,
        verdicts=ledger.verdicts_markdown,
        runs=lambda: tested.runs_markdown(chapters, runs),
    )
    return re.sub(link, r"\1.ipynb", filled)


def merge(chapter: Chapter, run: nbformat.NotebookNode | None) -> nbformat.NotebookNode:
    """Today's prose and code with the outputs of the run, cell by cell.

    Values that the build injected are shown where papermill put them, after the parameters.
    """
    page = nbformat.from_dict(chapter.notebook)
    if run:
        code = [cell for cell in page.cells if cell.cell_type == "code"]
        for cell, ran in zip(code, executed_cells(run), strict=True):
            assert cell.source == ran.source, f"{chapter.key}: merged with a run of other code"
            cell.outputs, cell.execution_count = _joined(ran.outputs), ran.execution_count
        _insert_injected(page, run)
    for cell in page.cells:
        if cell.cell_type == "code":
            cell.source = SOLUTION_MARKER.sub("", cell.source).rstrip("\n")
    return page


def _joined(outputs: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """Neighbouring pieces of one stream as one: where a kernel cuts them is chance."""
    joined: list[nbformat.NotebookNode] = []
    for output in outputs:
        last = joined[-1] if joined else {}
        if output.output_type == "stream" and output.name == last.get("name"):
            last["text"] += output.text
        else:
            joined.append(nbformat.from_dict(output))
    return joined


def _insert_injected(page: nbformat.NotebookNode, run: nbformat.NotebookNode) -> None:
    injected = [c for c in run.cells if "injected-parameters" in c.metadata.get("tags", [])]
    for cell in injected:
        is_default = ["parameters" in c.metadata.get("tags", []) for c in page.cells]
        page.cells.insert(is_default.index(True) + 1, cell)


def _run_jupyter_book() -> Path:
    """Always from nothing: an incremental build repeats no warning of a page it does not read."""
    shutil.rmtree(WORK, ignore_errors=True)
    tool = Path(sys.executable).with_name("jupyter-book")
    # -W -n: a warning, or a reference that leads nowhere, is an error.
    command = [tool, "build", SOURCE, "--path-output", WORK, "-W", "-n", "--keep-going"]
    log = paths.BUILD / "site.log"
    with open(log, "w", encoding="utf-8") as out:
        done = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT)
    if done.returncode:
        text = log.read_text("utf-8")
        if os.strerror(errno.ENOSPC) in text:
            raise OSError(errno.ENOSPC, "jupyter-book wrote to a full disk")
        raise BookError(
            "jupyter-book found faults. The site is as it was before.\n"
            + "\n".join(_faults_in_log(text))
            + f"\nThe whole log: {log.relative_to(paths.ROOT)}"
        )
    return WORK / "_build" / "html"


def _faults_in_log(text: str) -> list[str]:
    """The warnings of a log, by page of this repository; its end where it has none."""

    def place(found):
        key, number = found[1], int(found[3])
        # myst-nb counts 10000 lines a cell, prose and code.
        cell, line = divmod(number, 10000)
        at = f"cell {cell}, line {line}" if found[2] == "ipynb" else f"line {number}"
        return f"chapters/{key}.md, {at}:"

    text = re.sub(
        rf"{re.escape(str(SOURCE))}/(.+?)\.(ipynb|md):(\d+):", place, without_colours(text)
    )
    lines = text.splitlines()
    return [x for x in lines if re.search(r"WARNING|ERROR", x)] or lines[-30:]


def _replace(target: Path, new: Path) -> None:
    """Put a whole folder in the place of another: readers meet the old site or the new one."""
    old = target.with_name(f"{target.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if target.exists():
        target.rename(old)
    new.rename(target)
    shutil.rmtree(old, ignore_errors=True)
