"""When the supervisor ends a job, with stand-ins for torchrun and its ranks."""

import os
import subprocess
import time

import pytest
from jobs import book, job  # noqa: F401 - book is a fixture

from helpers import supervisor
from helpers.failures import explain


@pytest.fixture
def quiet_owner(monkeypatch):
    """The kernel lives and says nothing."""
    monkeypatch.setattr(supervisor.select, "select", lambda *_: time.sleep(0.01) or ([], [], []))


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({}, "start"),
        ({"ready.0": "1"}, "start"),
        ({"ready.0": "1", "ready.1": "2"}, "timeout"),
        ({"ready.0": "1", "ready.1": "2", "error.1": "{}"}, "stuck"),
        ({"torchrun.log": "Sending process 5 closing signal SIGTERM"}, "stuck"),
    ],
)
def test_why_a_job_is_over(quiet_owner, tmp_path, monkeypatch, files, why):
    monkeypatch.setattr(supervisor, "GRACE", 0.1)
    for name, text in {"torchrun.log": "", **files}.items():
        (tmp_path / name).write_text(text)
    order = {"owner": os.getppid(), "run": str(tmp_path), "nproc": 2}
    agent = subprocess.Popen(["sleep", "600"])
    try:
        assert supervisor._watch(agent, order | {"timeout": 0.4, "start_limit": 0.4}) == why
    finally:
        agent.kill()
        agent.wait()
    assert supervisor._watch(agent, order | {"timeout": 0, "start_limit": 0}) == "ended"


def test_the_end_of_the_owner(quiet_owner, monkeypatch):
    """A forked child of the kernel may hold the pipe open: then its parent tells."""
    assert not supervisor._owner_is_done(os.getppid())
    assert supervisor._owner_is_done(os.getppid() + 1)
    monkeypatch.setattr(supervisor.select, "select", lambda *_: ([0], [], []))
    assert supervisor._owner_is_done(os.getppid())


def test_ranks_that_never_reach_their_bodies(book, tmp_path):  # noqa: F811
    place = tmp_path / "logs" / "run_x" / "attempt_0" / "1"
    place.mkdir(parents=True)
    (place / "stderr.log").write_text(
        "Fatal Python error: Aborted\n\n"
        'Thread 0x00007f6d2 (most recent call first):\n  File "/a/threading.py", line 3 in wait\n\n'
        f"Current thread 0x00007f6d3 (most recent call first):\n"
        f'  File "{tmp_path}/probe.py", line 6 in slow\n  File "{tmp_path}/probe.py", line 7 in <module>\n'
        "\nExtension modules: numpy (total: 1)\n"
    )
    (tmp_path / "ready.0").write_text("1")
    wanted = job("def slow(): pass\nslow()", nproc=3)
    (tmp_path / "probe.py").write_text(wanted.script.text)
    outcome = {"why": "start", "code": None, "running": [], "limit": 120.0}
    lines, error = explain(wanted, tmp_path, outcome)
    assert str(error) == (
        "start: rank 1 and rank 2 were still on the way to the first line of the cell after 120 s"
    )
    assert lines == [
        "rank 0: ready",
        "rank 1 was here (most recent call last):",
        "  part/topic, cell 2, line 3, in <module>",
        "    slow()",
        "  part/topic, cell 2, line 2, in slow",
        "    def slow(): pass",
        "rank 2: its Python had hardly begun, and left no stack",
    ]
