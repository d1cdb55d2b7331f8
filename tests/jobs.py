"""A book with a job to run, and a witness of what the job leaves: processes, ports, files."""

import os
import textwrap
import threading
import time
import uuid
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from conftest import cell

from helpers import paths
from helpers.cells import RecordedCell
from helpers.launch import Job
from helpers.slicing import Script, slice_cell

CHAPTER = "part/topic"
IMPORTS = """
import os, signal, subprocess, sys, time
import torch
import torch.distributed as dist
from helpers.ranks import init_ranks
"""
MARK = "BOOK_TEST_MARK"
LIMIT = 5.0  # seconds after the event


@pytest.fixture
def book(book_copy, monkeypatch):
    """A book of two chapters, the second of which imports the first; it is being recorded."""
    monkeypatch.setenv("BOOK_RECORDING", "1")
    lesson = "def check_sign(x):\n    if x < 0:\n        raise ValueError(f'negative: {x}')\n"
    book_copy.page("part/signs", "Prose.", cell("1 + 1"), cell(lesson, "export"))
    book_copy.page(CHAPTER, cell("2 + 2"), "Prose.", cell("%%torchrun\nprint(1)"))
    return book_copy


def job(body: str, **options) -> Job:
    """A job whose body is the second cell of CHAPTER, from the line under the magic."""
    return Job("probe", CHAPTER, script(body, **options), **options)


def script(body: str, push=(), pull=(), **_) -> Script:
    """What the slicer makes of `body`, of which the imports stand in the first cell."""
    cells = [RecordedCell(1, IMPORTS.strip())]
    return slice_cell(textwrap.dedent(body).strip(), cells, list(push), pull, number=2)


class Witness:
    """Sees the processes that inherit our mark, and the ports on which they listen."""

    def __init__(self, monkeypatch, scratch: Path):
        self._mark = uuid.uuid4().hex
        self._scratch = scratch
        scratch.mkdir()
        monkeypatch.setenv(MARK, self._mark)
        monkeypatch.setenv("TMPDIR", str(scratch))
        self.seen: set[int] = set()
        self.ports: set[int] = set()

    def processes(self) -> list[psutil.Process]:
        """Living marked processes. This one is not: its environment shows as it was at birth."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if process.environ().get(MARK) == self._mark:
                    found.append(process)
        return found

    def with_argument(self, word: str) -> list[psutil.Process]:
        """Marked processes that have `word` in their command line."""
        found = []
        for process in self.processes():
            with suppress(psutil.Error):
                if any(word in argument for argument in process.cmdline()):
                    found.append(process)
        return found

    def look(self) -> None:
        for process in self.processes():
            self.seen.add(process.pid)
            with suppress(psutil.Error):
                self.ports |= _listening(process.net_connections("inet"))

    @contextmanager
    def watching(self):
        """Look again and again while the job runs, for what it opens."""
        over = threading.Event()

        def watch():
            while not over.wait(0.2):
                self.look()

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield self
        finally:
            over.set()
            thread.join()

    def assert_nothing_left(self, ranks: int, folders: int = 0) -> None:
        """Within LIMIT no process, port or file is left; but for `folders` folders of runs.

        Fails as well where it never saw torchrun, its ranks and a port of theirs.
        """
        assert len(self.seen) >= ranks + 2, "the witness saw too few processes"
        assert self.ports, "the witness saw no port"
        deadline = time.monotonic() + LIMIT
        while (left := self._left(folders)) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not left

    def _left(self, folders: int) -> list:
        runs = [p for p in (paths.BUILD / "runs").iterdir() if p.is_dir()]
        open_ports = _listening(psutil.net_connections("inet")) & self.ports
        published = (paths.BUILD / "cells").rglob("*")
        known = (".py", ".pt")
        half_written = [p for p in published if p.is_file() and p.suffix not in known]
        return [
            *self.processes(),
            *sorted(open_ports),
            *(runs if len(runs) != folders else []),
            *half_written,
            *(p for p in self._scratch.iterdir() if not p.name.startswith("torchinductor")),
        ]


def _listening(connections) -> set[int]:
    return {c.laddr.port for c in connections if c.status == psutil.CONN_LISTEN}


@pytest.fixture
def witness(monkeypatch, tmp_path):
    """A Witness of what this test starts; in the end it ends what the test did not."""
    found = Witness(monkeypatch, tmp_path / "tmp")
    yield found
    for process in found.processes():
        assert process.pid != os.getpid()
        with suppress(psutil.Error):
            process.kill()
