"""The private folder of a run, and the supervisor that guards it."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from helpers import paths, supervisor

END_LIMIT = 15.0  # seconds that the supervisor may take to end a job and to remove its folder
HIDES_THE_SCRIPTS_FOLDER = "PYTHONSAFEPATH"  # then a script would not find what it carries


@contextmanager
def run_folder(chapter: str) -> Iterator[tuple[Path, int]]:
    """A folder for this run only, and the lock that says it is in use while one of us lives.

    First removes folders that nobody uses: their kernel and supervisor were killed together.
    """
    runs = (paths.BUILD / "runs").resolve()  # as Python names files in tracebacks
    runs.mkdir(parents=True, exist_ok=True)
    with open(runs / ".lock", "w") as all_runs:
        fcntl.flock(all_runs, fcntl.LOCK_EX)  # else another kernel would sweep away our new folder
        for old in runs.iterdir():
            if old.is_dir() and not _in_use(old):
                supervisor.end_marked(old)
        folder = Path(tempfile.mkdtemp(prefix=f"{Path(chapter).name}-", dir=runs))
        lock = os.open(folder / ".lock", os.O_CREAT | os.O_RDWR)
        fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield folder, lock
    finally:
        os.close(lock)
        shutil.rmtree(folder, ignore_errors=True)


def _in_use(folder: Path) -> bool:
    try:
        with open(folder / ".lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # no lock: killed while it was made
        return False
    return False


@contextmanager
def supervised(order: dict, lock: int) -> Iterator[subprocess.Popen]:
    """The supervisor, running the job. On the way out, whatever the reason, it ends the job."""
    folder = Path(order["run"])
    with open(folder / "supervisor.log", "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-I", supervisor.__file__, json.dumps(order)],
            env={n: v for n, v in os.environ.items() if n != HIDES_THE_SCRIPTS_FOLDER},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            pass_fds=[lock],
            start_new_session=True,
        )
    try:
        yield process
    finally:
        try:
            process.communicate(b"\n", timeout=END_LIMIT)
        except (subprocess.TimeoutExpired, BrokenPipeError):
            process.kill()
        if process.wait() != 0:
            supervisor.end_marked(folder)
