"""Which rank failed first, and how a page says so."""

import itertools
import json
import re
import signal
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from helpers import agent
from helpers.paths import BookError, recording
from helpers.places import FRAME, Places, scrub
from helpers.report import stderr_of, without_noise

if TYPE_CHECKING:
    from helpers.launch import Job

FAILURE = re.compile(  # in the summary of torchrun
    r"time\s+: (?P<time>\S+)\n.*\n\s+rank\s+: (?P<rank>\d+) .*\n\s+exitcode\s+: (?P<code>-?\d+)"
)
LOST_A_PEER = re.compile(
    r"closed by peer|reset by peer|[Bb]roken pipe|[Pp]eer closed|pair closure|recvValue failed"
    r"|remote process exited|[Ss]ocket closed|[Cc]onnection refused"
)
DUMP = "Fatal Python error:"  # where faulthandler begins
THREAD = re.compile(r"^(?:Current thread|Thread) .*\(most recent call first\):$", re.MULTILINE)
SHOWN_OF_STDERR = 20  # lines


class TorchrunError(BookError):
    """A job failed. kind: a class of errors ("ValueError"), a signal, "exit code 3", "timeout", "start"."""

    def __init__(self, message: str, kind: str):
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class Fate:
    """How one rank ended badly. time: seconds since the epoch; stderr: without noise."""

    rank: int
    kind: str
    time: float
    message: str = ""
    traceback: str = ""
    stderr: str = ""

    @property
    def headline(self) -> str:
        first_line = scrub(self.message.strip()).partition("\n")[0]
        return f"rank {self.rank}: {self.kind}" + (f": {first_line}" if first_line else "")

    @property
    def lost_a_peer(self) -> bool:
        """Another rank went away first: this is a consequence."""
        return bool(LOST_A_PEER.search(self.message or self.stderr))


def explain(job: "Job", folder: Path, outcome: dict) -> tuple[list[str], TorchrunError]:
    """What to print about a job that failed, and the error to raise."""
    places = Places(folder, job.label, job.chapter, job.script.origins)
    if outcome["why"] in ("timeout", "start"):
        return _out_of_time(job, folder, outcome, places)
    fates = _fates(folder, job.nproc)
    if not fates:
        kind = _ending(outcome["code"])
        log = without_noise((folder / "torchrun.log").read_text(errors="replace"))
        lines = ["No rank failed; torchrun itself did:", *log.splitlines()[-SHOWN_OF_STDERR:]]
        return list(map(scrub, lines)), TorchrunError(f"torchrun: {kind}", kind)
    root = root_cause(list(fates.values()))
    lines = _story(root, places)
    lines += [_other(rank, fates.get(rank), root) for rank in range(job.nproc) if rank != root.rank]
    return lines, TorchrunError(root.headline, root.kind)


def root_cause(fates: list[Fate]) -> Fate:
    """The earliest failure, but for those that only tell of another rank's end.

    torchrun ends the survivors with SIGTERM. Of ranks that failed alike, the lowest: which was
    first by some milliseconds says nothing, and changes from run to run.
    """
    own = [fate for fate in fates if fate.kind != "SIGTERM"] or fates
    first = min(own, key=lambda fate: (fate.lost_a_peer, fate.time))
    alike = [f for f in own if (f.kind, f.message) == (first.kind, first.message)]
    return min(alike, key=lambda fate: fate.rank)


def _fates(folder: Path, nproc: int) -> dict[int, Fate]:
    """Ranks that failed, from the errors that they left, else from torchrun's summary."""
    fates = {}
    for match in FAILURE.finditer((folder / "torchrun.log").read_text(errors="replace")):
        # The summary knows whole seconds only, and a little late; a rank that was killed must
        # come before those that missed it.
        time = datetime.strptime(match["time"], "%Y-%m-%d_%H:%M:%S").timestamp() - 1
        rank = int(match["rank"])
        fates[rank] = _died(rank, int(match["code"]), time, stderr_of(folder, rank))
    for rank in range(nproc):
        if (file := folder / f"error.{rank}").is_file():
            error = json.loads(file.read_text())
            facts = (error["type"], error["time"], error["message"], error["traceback"])
            fates[rank] = Fate(rank, *facts, stderr_of(folder, rank))
    return fates


def _died(rank: int, code: int, time: float, stderr: str) -> Fate:
    """A rank that left no error: killed, ended by sys.exit, or failed before its body."""
    lines = stderr.splitlines()
    frames = [i for i, line in enumerate(lines) if FRAME.match(line)]
    if code == 1 and frames:  # a traceback: the error stands unindented after the last frame
        end = next((i for i in range(frames[-1], len(lines)) if re.match(r"\w", lines[i])), None)
        if end is not None:
            kind, _, message = lines[end].partition(": ")
            start = max(0, frames[0] - 1)
            facts = (time, message, "\n".join(lines[start:]), "\n".join(lines[:start]))
            return Fate(rank, kind.rpartition(".")[2], *facts)
    return Fate(rank, _ending(code), time, stderr=stderr)


def _ending(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def _story(root: Fate, places: Places) -> list[str]:
    """What is known of the rank that failed first."""
    said, _, dump = root.stderr.partition(DUMP)
    what = "" if root.traceback else f" {root.kind}"
    lines = [f"rank {root.rank} failed first:{what}"]
    if recording():  # live, it has been printed already
        lines += map(scrub, said.strip().splitlines()[-SHOWN_OF_STDERR:])
    lines += places.rewrite(root.traceback)
    if stacks := _stacks(dump, places):
        lines += ["It was here (most recent call last):", *stacks]
    if root.kind == "SIGKILL":
        lines.append("If nobody sent this signal, the system did, because memory ran out.")
    return lines


def _other(rank: int, fate: Fate | None, root: Fate) -> str:
    """One line about a rank that did not fail first."""
    if fate is None or fate.lost_a_peer or fate.kind in ("SIGTERM", "SIGKILL"):
        return f"rank {rank}: ended with rank {root.rank}"
    return fate.headline


def _out_of_time(job: "Job", folder: Path, outcome: dict, places: Places):
    """The Python stacks of the ranks that did not end, or did not begin."""
    ready = {int(file.suffix[1:]) for file in folder.glob("ready.*")}
    if outcome["why"] == "timeout":
        ranks, verb = outcome["running"], "still running"
    else:
        ranks = [rank for rank in range(job.nproc) if rank not in ready]
        verb = "still on the way to the first line of the cell"
    lines = []
    for rank in range(job.nproc):
        stacks = _stacks(stderr_of(folder, rank).partition(DUMP)[2], places)
        if rank not in ranks:
            lines.append(f"rank {rank}: {'had ended' if outcome['why'] == 'timeout' else 'ready'}")
        elif stacks:
            lines += [f"rank {rank} was here (most recent call last):", *stacks]
        else:
            lines.append(f"rank {rank}: its Python had hardly begun, and left no stack")
    names = " and ".join(", ".join(f"rank {rank}" for rank in ranks).rsplit(", ", 1))
    were = "was" if len(ranks) == 1 else "were"
    why, limit = outcome["why"], outcome["limit"]
    return lines, TorchrunError(f"{why}: {names} {were} {verb} after {limit:g} s", why)


def _stacks(dump: str, places: Places) -> list[str]:
    """Of each thread that was in the book's code (a hook runs beside the main one), and main."""
    blocks = [block.split("\n\n")[0].splitlines() for block in THREAD.split(dump)[1:]]
    blocks = [_up_to_the_script(block) for block in blocks]
    told = [places.rewrite("\n".join(reversed([b for b in block if b]))) for block in blocks]
    in_book = [lines for lines in told[:-1] if any(", cell " in line for line in lines)]
    return [line for lines in [*in_book, *told[-1:]] for line in lines]


def _up_to_the_script(stack: list[str]) -> list[str]:
    """Without the frames that called the script: those of torchrun, from which a rank is forked."""
    ours = f'  File "{agent.__file__}", '
    return list(itertools.takewhile(lambda line: not line.startswith(ours), stack))
