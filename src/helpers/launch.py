"""Runs a job: a script, on real ranks, through torchrun, watched by `helpers.supervisor`."""

import errno
import importlib.util
import json
import os
import re
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from helpers import agent, carry, cluster, devices, paths
from helpers.failures import TorchrunError, explain
from helpers.paths import BookError
from helpers.ranks import dump_plain, load_plain
from helpers.report import Logs
from helpers.runs import run_folder, supervised

if TYPE_CHECKING:
    from helpers.slicing import Script

__all__ = ["Job", "Result", "TorchrunError", "run"]

START_LIMIT = 120.0  # seconds until all ranks must have reached their bodies
POLL = 0.1  # seconds between two looks at the logs
NEARLY_FULL = 2**20  # bytes free
MEMORY_OF_A_RANK = 0.25 * 2**30  # bytes; `import torch` alone takes about this


@dataclass(frozen=True)
class Job:
    """What one distributed cell asks for.

    chapter: key of the chapter, such as "capture/capture_timing"; with label it names the script.
    timeout: seconds, counted from the moment when all ranks have reached the body.
    push: name -> plain data or tensors; pull: names that each rank hands back.
    hosts: above 1, on an emulated cluster of so many, with `nproc` ranks on all of them together;
    wires: the rate of each host's wire.
    """

    label: str
    chapter: str
    script: "Script"
    nproc: int = 2
    timeout: float = 120.0
    push: dict = field(default_factory=dict)
    pull: tuple[str, ...] = ()
    hosts: int = 1
    wires: tuple[str, ...] = ()


@dataclass(frozen=True)
class Result:
    """What each rank printed, and the pulled values: name -> list; both in rank order."""

    outputs: list[str]
    pulled: dict[str, list]


def run(job: Job) -> Result:
    """Run `job` and print its output: live as it comes, in a recording after the end.

    Raises TorchrunError when a rank fails or the time is up, and BookError for a job that
    cannot run. Whatever happens, also to this process, no process and no file of the run stays.
    """
    _check(job)
    pushed = dump_plain(job.push, "push") if job.push else None
    files = carry.script_folder(job.label, job.script.text, pushed)
    device = devices.describe(job.nproc, "auto" if job.hosts == 1 else "cpu")
    with _plain_sentence_for_a_full_disk(), run_folder(job.chapter) as (folder, lock):
        carry.write(files, folder)
        carry.publish(files, carry.published(job.chapter), job.label, folder)
        print(_command_by_hand(job, device), flush=True)
        with supervised(_order(job, folder), lock) as process:
            logs = Logs(folder, job.nproc, live=not paths.recording())
            outcome = _watch(process, logs, folder)
            logs.print_rest()
            if (ran_on := _read(folder / "ran_on")) not in ("", device):
                print(f"# ran with {ran_on}")
            if outcome["why"] != "ended" or outcome["code"] != 0:
                lines, error = explain(job, folder, outcome)
                print("\n".join(lines), flush=True)
                raise error
            return Result(logs.stdout(), _pulled(job, folder))


def _check(job: Job) -> None:
    import psutil

    if not re.fullmatch(r"[A-Za-z_]\w*", job.label):
        raise BookError(f"--name {job.label}: use letters, digits and _ only, a letter first.")
    if job.label in sys.stdlib_module_names or importlib.util.find_spec(job.label):
        raise BookError(
            f"--name {job.label}: the script would hide the module of that name from its "
            "ranks. Choose another name."
        )
    if isinstance(job.nproc, bool) or not isinstance(job.nproc, int) or job.nproc < 1:
        raise BookError(f"--nproc {job.nproc}: the number of ranks is a whole number from 1.")
    if not 0 < job.timeout < float("inf"):
        raise BookError(f"--timeout {job.timeout}: give a number of seconds above 0.")
    free = psutil.virtual_memory().available
    if job.nproc > (most := max(1, int(free / MEMORY_OF_A_RANK))):
        raise BookError(
            f"--nproc {job.nproc}: each rank needs about a quarter of a GB of memory, and "
            f"{free / 2**30:.0f} GB are free. Ask for at most {most}."
        )


def _command_by_hand(job: Job, device: str) -> str:
    script = f"_build/cells/{job.chapter}/{job.label}.py"
    ranks = "1 rank" if job.nproc == 1 else f"{job.nproc} ranks"
    if job.hosts > 1:
        wires = " and ".join(dict.fromkeys(job.wires))
        return (
            f"$ torchrun --nnodes {job.hosts} --nproc-per-node {job.nproc // job.hosts} "
            f"--rdzv-backend c10d --rdzv-endpoint FIRST_HOST:{cluster.PORT} {script}"
            f"   # on each of {job.hosts} hosts, emulated, with wires of {wires}; {ranks}, {device}"
        )
    return f"$ torchrun --standalone --nproc-per-node {job.nproc} {script}   # {ranks}, {device}"


def _order(job: Job, folder: Path) -> dict:
    """What the supervisor is told: the command, its environment, its limits in seconds."""
    script = str(folder / f"{job.label}.py")
    torchrun = [*agent.COMMAND, "--standalone"]
    torchrun += ["--nproc-per-node", str(job.nproc), "--redirects", "3"]
    torchrun += ["--log-dir", str(folder / "logs"), script]
    if job.hosts > 1:
        per_host = job.nproc // job.hosts
        torchrun = cluster.command(job.hosts, job.wires, per_host, folder, script)
    env = {
        "BOOK_RUN": str(folder),
        "OMP_NUM_THREADS": "1",
        "PYTHONFAULTHANDLER": "1",
        "PYTHONIOENCODING": "utf-8",
        "PYTHONUNBUFFERED": "1",
    }
    limits = {
        "nproc": job.nproc,
        "hosts": job.hosts,
        "timeout": job.timeout,
        "start_limit": START_LIMIT,
    }
    return {"owner": os.getpid(), "run": str(folder), "command": torchrun, "env": env, **limits}


def _watch(process: subprocess.Popen, logs: Logs, folder: Path) -> dict:
    """Print what comes until the supervisor says how the job ended."""
    while not select.select([process.stdout], [], [], POLL)[0]:
        logs.print_new()
    if line := process.stdout.readline():
        return json.loads(line)
    raise BookError(f"The supervisor of the ranks was killed. {_read(folder / 'supervisor.log')}")


def _pulled(job: Job, folder: Path) -> dict[str, list]:
    pulled = {name: [] for name in job.pull}
    for rank in range(job.nproc if job.pull else 0):
        file = folder / f"pulled.{rank}"
        values = load_plain(file) if file.is_file() else {}
        for name in job.pull:
            if name not in values:
                raise BookError(
                    f"--pull {name}: rank {rank} ended without setting `{name}`. "
                    "Set it on every rank, if only to None."
                )
            pulled[name].append(values[name])
    return pulled


@contextmanager
def _plain_sentence_for_a_full_disk() -> Iterator[None]:
    """Ranks tell of a full disk in many ways, or cannot; so look at the disk itself."""
    try:
        yield
    except (OSError, TorchrunError) as error:
        full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT)
        if full or (paths.BUILD.exists() and shutil.disk_usage(paths.BUILD).free < NEARLY_FULL):
            where = f"The disk that holds {paths.BUILD} is full."
            raise BookError(f"{where} Free some space, and run the cell again.") from error
        raise


def _read(file: Path) -> str:
    return file.read_text(errors="replace") if file.is_file() else ""
