"""Runs one chapter from top to bottom in a kernel of its own."""

import errno
import json
import logging
import os
import re
import shutil
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import nbformat

from helpers import paths, tested
from helpers.book import Chapter
from helpers.paths import BookError

SCRATCH = paths.BUILD / "scratch"
JUPYTER = paths.BUILD / "jupyter"
FAILED = paths.BUILD / "failed"

CELL_TIMEOUT = 1200  # seconds, for a machine that is busy; a distributed cell ends by its own --timeout long before
START_ALLOWANCE = 180  # seconds that ranks may take to start before their own limit counts
TRACEBACK_LINES = 30
DISK_FULL = (
    "The disk is full. Free some space and run the command again: finished chapters are kept."
)


class ChapterFailed(BookError):
    """A cell of a chapter raised, ran out of time, or took its kernel down."""


@dataclass(frozen=True)
class Run:
    """An executed notebook, and the ("data" | "claim", name) pairs that it read."""

    notebook: nbformat.NotebookNode
    uses: set[tuple[str, str]]


def chapter_environment(key: str) -> dict[str, str]:
    """What a kernel that runs `key` for the record finds in its environment."""
    return {
        "BOOK_CHAPTER": key,
        "BOOK_RECORDING": "1",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",  # a debugger's warning on stderr
        **kernel_environment(),
    }


def kernel_environment() -> dict[str, str]:
    """Our kernels are found here, and nothing of the reader's own IPython profile is."""
    return {"JUPYTER_PATH": str(JUPYTER), "IPYTHONDIR": str(paths.BUILD / "ipython")}


def run_chapter(chapter: Chapter, parameters: dict, on_cell: Callable[[int], None]) -> Run:
    """Execute every cell; `on_cell` is told the number of each code cell as it starts.

    A failed notebook is kept in _build/failed. Raises ChapterFailed.
    """
    import papermill  # here, because it takes a second that a cached build need not pay
    from nbclient.exceptions import CellTimeoutError, DeadKernelError
    from papermill.exceptions import PapermillExecutionError
    from traitlets.config import Config

    # We report failures ourselves; log lines of papermill and the kernel would break the bar.
    logging.getLogger("papermill").setLevel(logging.CRITICAL + 1)
    number = 0

    def begin(cell, cell_index):
        nonlocal number
        if "injected-parameters" not in cell.metadata.get("tags", []):
            number += 1
            on_cell(number)

    with _scratch_folder(chapter.key) as folder, _environment(chapter.key, folder):
        (folder / "cwd").mkdir()
        try:
            notebook = papermill.execute_notebook(
                deepcopy(chapter.notebook),
                folder / "run.ipynb",
                parameters=parameters,
                cwd=folder / "cwd",
                language="python",
                progress_bar=False,
                on_cell_execute=begin,
                execution_timeout=_cell_timeout(chapter),
                extra_arguments=["--log-level=CRITICAL"],
                config=Config(KernelManager=_sockets(folder)),
            )
        except PapermillExecutionError as error:
            trace = without_colours("\n".join(error.traceback)) or f"{error.ename}: {error.evalue}"
            raise _failure(chapter, number, trace, folder) from None
        except CellTimeoutError:
            text = f"The cell did not end within {_cell_timeout(chapter)} seconds."
            raise _failure(chapter, number, text, folder) from None
        except DeadKernelError:
            text = "The kernel died: out of memory, or a crash in native code."
            raise _failure(chapter, number, text, folder) from None
        (FAILED / f"{chapter.key}.ipynb").unlink(missing_ok=True)
        notebook.metadata["ran_on"] = tested.this_machine()
        return Run(notebook, _read_uses(folder / "uses"))


def executed_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """The code cells of a run, in the order and number of the chapter's own."""
    code = (cell for cell in notebook.cells if cell.cell_type == "code")
    return [cell for cell in code if "injected-parameters" not in cell.metadata.get("tags", [])]


def _failure(chapter: Chapter, number: int, error: str, folder: Path) -> ChapterFailed:
    kept = FAILED / f"{chapter.key}.ipynb"
    kept.parent.mkdir(parents=True, exist_ok=True)
    if (folder / "run.ipynb").exists():
        shutil.move(folder / "run.ipynb", kept)
    if not number:
        return ChapterFailed(f"{chapter.key}: the kernel did not start.\n{error}")
    cell = chapter.cells[number - 1]
    where = f"{chapter.key}: cell {number} failed (chapters/{chapter.key}.md, line {cell.line})"
    source = "\n".join(f"    {line}" for line in cell.source.splitlines())
    kept_at = kept.relative_to(paths.ROOT)
    tail = "\n".join(error.splitlines()[-TRACEBACK_LINES:])
    if os.strerror(errno.ENOSPC) in error:
        tail += f"\n\n{DISK_FULL}"
    return ChapterFailed(f"{where}\n\n{source}\n\n{tail}\n\nThe notebook so far: {kept_at}")


def without_colours(text: str) -> str:
    """Drop terminal escape codes."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def _cell_timeout(chapter: Chapter) -> int:
    """Above the limit of every distributed cell, so that the cell can report its own."""
    own = [int(n) for c in chapter.cells for n in re.findall(r"--timeout[ =](\d+)", c.source)]
    return max([CELL_TIMEOUT, *(limit + START_ALLOWANCE for limit in own)])


@contextmanager
def _scratch_folder(key: str) -> Iterator[Path]:
    """A new folder for one run, removed after it; only the holder of the build lock comes here."""
    shutil.rmtree(SCRATCH, ignore_errors=True)  # what a killed build left
    SCRATCH.mkdir(parents=True)
    try:
        yield Path(tempfile.mkdtemp(dir=SCRATCH, prefix=f"{key.replace('/', '-')}-"))
    finally:
        shutil.rmtree(SCRATCH, ignore_errors=True)


def _sockets(folder: Path) -> dict[str, str]:
    """Where a kernel listens. On Linux not at TCP ports: they are chosen before the kernel binds
    them, and a rank may come between. A socket whose name begins with @ is no file."""
    found = {"connection_file": str(folder / "kernel.json")}
    if sys.platform == "linux":
        found |= {"transport": "ipc", "ip": f"@book-{uuid.uuid4().hex}"}
    return found


@contextmanager
def _environment(key: str, folder: Path) -> Iterator[None]:
    """papermill starts its kernel with our own environment, so set that for the while."""
    before = dict(os.environ)
    os.environ.update(chapter_environment(key), BOOK_USES=str(folder / "uses"))
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), before["PATH"]])
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _read_uses(path: Path) -> set[tuple[str, str]]:
    if not path.exists():
        return set()
    return {(use["kind"], use["name"]) for use in map(json.loads, path.read_text().splitlines())}
