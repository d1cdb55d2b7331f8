"""Keeps two builds of one checkout apart, and leaves no process behind when one ends."""

import ctypes
import fcntl
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

PR_SET_CHILD_SUBREAPER = 36
GRACE = 3.0  # seconds that a torchrun supervisor has to end its own ranks


@contextmanager
def build_lock(path: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the one lock of this checkout; wait for whoever has it.

    flock, because the system releases it when its owner dies, however it dies.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        file = open(path, "a+", encoding="utf-8")  # noqa: SIM115 - held until the build ends
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another build is running (pid {path.read_text().strip()}); waiting")
            fcntl.flock(file, fcntl.LOCK_EX)
        if path.exists() and os.fstat(file.fileno()).st_ino == path.stat().st_ino:
            break
        file.close()  # `make clean` removed the file while we waited: it guards nothing now
        path.parent.mkdir(parents=True, exist_ok=True)
    file.truncate(0)
    file.write(f"{os.getpid()}\n")
    file.flush()
    try:
        yield
    finally:
        file.close()


@contextmanager
def leave_no_process() -> Iterator[None]:
    """Within, SIGTERM and SIGHUP interrupt like Ctrl-C, and no descendant outlives an interrupt.

    The kernels go first, at once: a busy one would answer a polite request only after its cell.
    """
    if sys.platform == "linux":  # orphans of a dead kernel then become our children
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def interrupt(signum, frame):
        for name in caught:
            signal.signal(name, signal.SIG_IGN)  # the clean-up below is short, let it finish
        seen.extend(psutil.Process().children(recursive=True))
        for child in psutil.Process().children():
            with suppress(psutil.NoSuchProcess):
                child.kill()
        raise KeyboardInterrupt(128 + signum)

    seen: list[psutil.Process] = []
    caught = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {name: signal.signal(name, interrupt) for name in caught}
    try:
        yield
    finally:
        end_descendants(seen)
        for name, handler in before.items():
            signal.signal(name, handler)


def end_descendants(seen: list[psutil.Process] | None = None) -> None:
    """Wait a moment for all processes below this one (and those in `seen`), then kill them."""
    deadline = time.monotonic() + GRACE
    while living := _living(seen or []):
        if time.monotonic() > deadline:
            for process in living:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
        time.sleep(0.05)


def _living(seen: list[psutil.Process]) -> list[psutil.Process]:
    below = psutil.Process().children(recursive=True)
    living = []
    for process in {*below, *seen}:
        with suppress(psutil.NoSuchProcess):
            if process.status() != psutil.STATUS_ZOMBIE:
                living.append(process)
            elif process.ppid() == os.getpid():
                with suppress(ChildProcessError):
                    os.waitpid(process.pid, os.WNOHANG)
    return living
