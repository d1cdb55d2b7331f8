"""A build that is interrupted, killed, or not alone: no process, no half-written file, no race."""

import signal
import time

import psutil
import pytest
from tiny_book import TinyBook

DEADLINE = 60.0  # seconds before a test gives up; nothing is judged by the clock


@pytest.fixture
def slow(tmp_path):
    """A chapter that ends, and one that waits for the file `go` beside a child of its kernel."""
    book = TinyBook(tmp_path)
    book.chapter("part/quick", "1 + 1")
    go, pids = book.root / "go", book.root / "pids"
    wait = (
        "import os, pathlib, subprocess, time\n"
        "child = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        f"pathlib.Path({str(pids)!r}).write_text(f'{{os.getpid()}} {{child.pid}} .')\n"
        f"while not pathlib.Path({str(go)!r}).exists():\n    time.sleep(0.05)\n"
        "child.kill()"
    )
    book.chapter("part/waits", wait)
    return book


def wait_until(what):
    end = time.monotonic() + DEADLINE
    while not (found := what()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)
    return found


def started(book):
    """Processes of the waiting chapter: its kernel, and a child in a session of its own."""
    pids = book.root / "pids"
    wait_until(lambda: pids.exists() and pids.read_text().endswith("."))
    return [psutil.Process(int(pid)) for pid in pids.read_text().split()[:2]]


def dead(process):
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_interrupted_build_leaves_nothing_and_resumes(slow, name):
    build = slow.start("build", "--no-site")
    processes = started(slow)
    build.send_signal(signal.Signals[name])
    output, _ = build.communicate(timeout=DEADLINE)
    assert build.returncode == 128 + signal.Signals[name]
    assert "Finished chapters are kept" in output and "Traceback" not in output
    assert all(map(dead, processes)), "the build had ended, and a process lived"
    files = {p.name for p in (slow.root / "_build/run").rglob("*") if p.is_file()}
    assert files == {"quick.ipynb", "quick.key.json"}
    assert not (slow.root / "_build/scratch").exists()
    slow.ran()
    (slow.root / "go").touch()
    assert slow.execute() == ["part/waits"]


def test_killed_build_leaves_no_kernel_and_no_lock(slow):
    build = slow.start("build", "--no-site")
    kernel, child = started(slow)
    build.kill()
    build.communicate(timeout=DEADLINE)
    wait_until(lambda: dead(kernel))
    child.kill()
    slow.ran()
    (slow.root / "go").touch()
    assert slow.execute() == ["part/waits"]


def test_second_build_waits_for_the_first(slow):
    first = slow.start("build", "--no-site")
    started(slow)
    second = slow.start("build", "--no-site")
    line = second.stdout.readline()
    assert line == f"another build is running (pid {first.pid}); waiting\n"
    (slow.root / "go").touch()
    for build in (first, second):
        output, _ = build.communicate(timeout=DEADLINE)
        assert build.returncode == 0, output
    assert "part/waits: cached" in output
    assert slow.ran() == ["part/quick", "part/waits"], "each was executed once"
