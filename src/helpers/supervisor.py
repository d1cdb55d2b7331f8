"""Runs torchrun and ends every process of the job. A program of its own; see `main`.

torchrun starts each rank in a session of its own, so that no signal to a process group
reaches them. This process adopts every orphan below it instead (Linux: a subreaper), and
outlives the notebook's kernel long enough to end them and to remove the run's folder.
"""

import contextlib
import ctypes
import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # of <linux/prctl.h>
LINUX = sys.platform == "linux"
POLL = 0.05  # seconds; small beside the start of a rank
GRACE = 3.0  # seconds that a failing job has for ending by itself
DUMP = 2.0  # seconds that a rank has for printing its Python stacks


def main(job: dict) -> None:
    """Run `job`: {owner, run, nproc, hosts, timeout, start_limit, command, env}; seconds.

    Prints one line of JSON when the job is over: {why, code, running, limit}. `why` is "ended",
    "stuck" (a rank failed, and another would not end), "timeout", or "start" (a rank did not
    reach its body); `code` is torchrun's; `running` lists the ranks that a timeout found alive.
    Then it waits for the kernel to say that it has read the logs, or to die, and removes the
    folder. Where the kernel dies or interrupts before the end, it prints nothing.
    """
    run = Path(job["run"])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if LINUX:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        with open(run / "torchrun.log", "wb") as log:
            agent = subprocess.Popen(
                job["command"],
                env=os.environ | job["env"],
                cwd=run,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=_die_with_parent if LINUX else None,
            )
        why = _watch(agent, job)
        running = _stop(agent, why, run, job["hosts"])
        code = agent.poll()
        _end_all(run)
        if why != "owner":
            limit = job["start_limit" if why == "start" else "timeout"]
            outcome = {"why": why, "code": code, "running": running, "limit": limit}
            print(json.dumps(outcome), flush=True)
            while not _owner_is_done(job["owner"]):
                pass
    finally:
        _end_all(run)
        shutil.rmtree(run, ignore_errors=True)


def _watch(agent: subprocess.Popen, job: dict) -> str:
    """Wait until the job is over; say why. "stuck": a rank failed and another will not end."""
    run = Path(job["run"])
    began, ready, failed = time.monotonic(), None, None
    while agent.poll() is None:
        if _owner_is_done(job["owner"]):
            return "owner"
        now = time.monotonic()
        if ready is None and len(list(run.glob("ready.*"))) == job["nproc"]:
            ready = now
        if failed is None and _a_rank_failed(run):
            failed = now
        if failed is not None and now > failed + GRACE:
            return "stuck"
        if ready is None and now > began + job["start_limit"]:
            return "start"
        if ready is not None and now > ready + job["timeout"]:
            return "timeout"
    return "ended"


def _owner_is_done(owner: int) -> bool:
    """Sleep up to POLL. True once the kernel wrote to our stdin or died.

    A forked child of the kernel may hold the other end open, so that the end of file never
    comes: hence also the look at the parent.
    """
    readable, _, _ = select.select([0], [], [], POLL)
    return bool(readable) or os.getppid() != owner


def _a_rank_failed(run: Path) -> bool:
    """A rank left its error, or torchrun (which waits 30 s) has asked the others to end."""
    return any(run.glob("error.*")) or b"closing signal" in (run / "torchrun.log").read_bytes()


def _stop(agent: subprocess.Popen, why: str, run: Path, hosts: int) -> list[int]:
    """Get the last words of a job that does not end: stacks of the ranks, or torchrun's.

    On several hosts `agent` is the parent of theirs. Returns the ranks that a timeout found running.
    """
    if why not in ("stuck", "timeout", "start"):
        return []
    agents = [psutil.Process(agent.pid)]
    if hosts > 1:
        agents = agents[0].children()
    if why == "stuck":  # torchrun can only tell how each rank ended when all have
        _kill([p for a in agents for p in a.children(recursive=True)])
        with contextlib.suppress(subprocess.TimeoutExpired):
            agent.wait(GRACE)
        return []
    for each in agents:  # else it ends the others when the first has aborted
        each.suspend()
    ranks = [p for a in agents for p in a.children() if _alive(p)]
    pids = {int(f.read_text()): int(f.suffix[1:]) for f in run.glob("ready.*")}
    for process in ranks:
        with contextlib.suppress(psutil.Error):
            process.send_signal(signal.SIGABRT)  # faulthandler prints, even in a blocked call
    deadline = time.monotonic() + DUMP
    while any(map(_alive, ranks)) and time.monotonic() < deadline:
        time.sleep(POLL)
    return sorted(pids[p.pid] for p in ranks if p.pid in pids)


def _end_all(run: Path) -> None:
    """SIGKILL everything below us until nothing is left."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        left = psutil.Process().children(recursive=True) if LINUX else marked(run)
        if not any(map(_alive, left)):
            return
        _kill(left)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.01)


def marked(run: Path) -> list[psutil.Process]:
    """The processes of this run by their environment: for orphans that nobody adopted.

    Misses what cleared its environment.
    """
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get("BOOK_RUN") == str(run):
                found.append(process)
    return found


def end_marked(run: Path) -> None:
    """SIGKILL what is left of a run whose supervisor was itself killed; remove its folder."""
    deadline = time.monotonic() + 5
    while (left := [p for p in marked(run) if _alive(p)]) and time.monotonic() < deadline:
        _kill(left)
        time.sleep(0.01)
    shutil.rmtree(run, ignore_errors=True)


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.kill()


def _alive(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


def _die_with_parent() -> None:
    """Runs in torchrun before its exec: if this supervisor is killed, torchrun is too."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
