"""Jobs that fail in every way, and that nothing of them stays."""
# ruff: noqa: F811 - fixtures are imported, and named again as parameters

import signal
import subprocess
import sys
import threading
import time

import pytest
from jobs import CHAPTER, LIMIT, book, job, witness  # noqa: F401

from helpers import paths, runs
from helpers.launch import Job, TorchrunError, run
from helpers.paths import BookError
from helpers.slicing import Script


def test_a_rank_raises(book, witness, capsys):
    body = """
    rank, world_size, device = init_ranks("cpu")
    time.sleep(1)  # or the witness may miss a rank
    from helpers.lessons.signs import check_sign
    if rank == 1:
        check_sign(-rank)
    dist.barrier()
    """
    with witness.watching(), pytest.raises(TorchrunError) as caught:
        run(job(body))
    witness.assert_nothing_left(ranks=2)

    text = "rank 1: ValueError: negative: -1"
    assert (str(caught.value), caught.value.kind) == (text, "ValueError")
    assert capsys.readouterr().out.splitlines()[1:] == [
        "rank 1 failed first:",
        "Traceback (most recent call last):",
        "  part/topic, cell 2, line 6, in <module>",
        "    check_sign(-rank)",
        "  part/signs, cell 2, line 3, in check_sign",
        "    raise ValueError(f'negative: {x}')",
        "ValueError: negative: -1",
        "rank 0: ended with rank 1",
    ]


def test_ranks_hang_until_the_time_is_up(book, witness, capsys):
    body = """
    rank, world_size, device = init_ranks("cpu")
    def stuck():
        time.sleep(600)
    if rank == 0:
        dist.recv(torch.ones(1), src=1)
    if rank == 1:
        stuck()
    time.sleep(1)
    """
    with witness.watching(), pytest.raises(TorchrunError) as caught:
        run(job(body, nproc=3, timeout=6))
    witness.assert_nothing_left(ranks=3)

    text = "timeout: rank 0 and rank 1 were still running after 6 s"
    assert (str(caught.value), caught.value.kind) == (text, "timeout")
    out = capsys.readouterr().out
    first, second = out.split("rank 1 was here (most recent call last):\n")
    assert "rank 0 was here" in first
    assert "  part/topic, cell 2, line 6, in <module>\n    dist.recv(torch.ones(1), src=1)" in first
    assert "torch/distributed/distributed_c10d.py, in recv" in first
    assert second.splitlines() == [
        "  part/topic, cell 2, line 8, in <module>",
        "    stuck()",
        "  part/topic, cell 2, line 4, in stuck",
        "    time.sleep(600)",
        "rank 2: had ended",
    ]


def test_a_rank_is_killed(book, witness, capsys):
    body = """
    rank, world_size, device = init_ranks("cpu")
    time.sleep(1)
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(torch.ones(1))
    """
    with witness.watching(), pytest.raises(TorchrunError) as caught:
        run(job(body))
    witness.assert_nothing_left(ranks=2)

    assert (str(caught.value), caught.value.kind) == ("rank 1: SIGKILL", "SIGKILL")
    lines = capsys.readouterr().out.splitlines()
    assert (lines[1], lines[-1]) == ("rank 1 failed first: SIGKILL", "rank 0: ended with rank 1")


def test_a_rank_fails_and_the_other_ignores_it(book, witness):
    """torchrun alone would wait 30 s; a process that a rank started is ended as well."""
    body = """
    import os, signal, subprocess, sys, time  # no torch: quicker
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.environ["RANK"] == "1":
        subprocess.Popen(["sleep", "600"], start_new_session=True)
        sys.exit(3)
    time.sleep(600)
    """
    with witness.watching(), pytest.raises(TorchrunError) as caught:
        run(job(body, timeout=15))
    witness.assert_nothing_left(ranks=2)
    assert str(caught.value) == "rank 1: exit code 3"


KERNEL = """
import signal
import sys
from pathlib import Path
from helpers import launch, paths
from helpers.slicing import slice_cell
paths.BUILD = Path(sys.argv[1])
signal.signal(signal.SIGINT, signal.default_int_handler)  # as a kernel does: a job of `&` has none
body = "import time\\nprint('waiting')\\ntime.sleep(600)"
try:
    launch.run(launch.Job("probe", "part/topic", slice_cell(body, [])))
except KeyboardInterrupt:
    print("interrupted", flush=True)
    time.sleep(600)  # the kernel lives on
"""


@pytest.fixture
def kernel(book, witness, monkeypatch):
    """A process that runs a job whose ranks hang, once they do."""
    monkeypatch.delenv("BOOK_RECORDING")
    command = [sys.executable, "-c", "import time" + KERNEL, str(paths.BUILD)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    waiting = set()
    while len(waiting) < 2:
        line = process.stdout.readline()
        assert line, "the kernel ended"
        waiting |= {line} if line.endswith("waiting\n") else set()
    assert waiting == {"[rank 0] waiting\n", "[rank 1] waiting\n"}  # live, with both still running
    witness.look()
    yield process
    process.kill()
    process.wait()


def test_the_cell_is_interrupted(kernel, witness):
    kernel.send_signal(signal.SIGINT)
    assert kernel.stdout.readline() == "interrupted\n"
    witness.look()
    assert [p.pid for p in witness.processes()] == [kernel.pid]
    kernel.kill()
    witness.assert_nothing_left(ranks=2)


def test_the_kernel_is_killed(kernel, witness):
    kernel.kill()
    witness.assert_nothing_left(ranks=2)


def test_kernel_and_supervisor_are_killed(kernel, witness):
    """Nobody is left to remove the folder: the next run does."""
    [supervisor] = witness.with_argument("supervisor.py")
    kernel.send_signal(signal.SIGSTOP)
    supervisor.kill()
    kernel.kill()
    witness.assert_nothing_left(ranks=2, folders=1)
    [left] = [p for p in (paths.BUILD / "runs").iterdir() if p.is_dir()]
    deadline = time.monotonic() + LIMIT
    while runs._in_use(left) and time.monotonic() < deadline:
        time.sleep(0.1)  # a process that is ending loses its environment before its locks
    with runs.run_folder(CHAPTER) as (folder, _):
        assert [p for p in folder.parent.iterdir() if p.is_dir()] == [folder]
    witness.assert_nothing_left(ranks=2)


NEVER_READY = Job(
    "probe", CHAPTER, Script("import time\ntime.sleep(600)\n", {1: (1, 1), 2: (1, 2)})
)


def test_the_supervisor_is_killed(book, witness):
    """The kernel ends the ranks itself, also those that have not reached their bodies."""

    def kill_supervisor():
        while len(witness.with_argument("probe.py")) < 3 or len(witness.seen) < 4:
            witness.look()  # until it has seen the supervisor, torchrun and two ranks
            time.sleep(0.1)
        for process in witness.with_argument("supervisor.py"):
            process.kill()

    killer = threading.Thread(target=kill_supervisor)
    killer.start()
    with witness.watching(), pytest.raises(BookError, match=r"supervisor .* was killed"):
        run(NEVER_READY)
    killer.join()
    witness.assert_nothing_left(ranks=2)
