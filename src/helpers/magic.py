"""The magics of a distributed cell: `%%torchrun` and `%torchrun_script`."""

import argparse
import os
import re
import shlex
from typing import NoReturn

from IPython.core.magic import Magics, cell_magic, line_magic, magics_class

from helpers import cluster, launch
from helpers.cells import CellRecorder
from helpers.launch import Job, TorchrunError
from helpers.paths import BookError, chapter_key
from helpers.slicing import Script, slice_cell

MOST_RANKS = 64
USAGE = (
    "%%torchrun --nproc 2 [--timeout 120] [--name LABEL] [--push a,b] [--pull r,s] "
    "[--expect ErrorName|timeout|SIGABRT|SIGKILL] [--show] "
    "[--hosts 2 --wire 200mbit[,50mbit] [--recorded RUN]]"
)


def register(shell) -> None:
    """Add the magics to an IPython shell; again is harmless."""
    if not isinstance(getattr(shell, "torchrun_recorder", None), CellRecorder):
        shell.torchrun_recorder = CellRecorder(shell)
        shell.register_magics(TorchrunMagics(shell, shell.torchrun_recorder))
        shell.set_custom_exc((BookError,), _show_book_error)


@magics_class
class TorchrunMagics(Magics):
    """Runs cells on ranks; knows the scripts of the cells that ran in this notebook."""

    def __init__(self, shell, recorder: CellRecorder):
        super().__init__(shell)
        self._recorder = recorder
        self._scripts: dict[str, Script] = {}

    @cell_magic
    def torchrun(self, line: str, body: str) -> None:
        """Run the cell on real ranks, through torchrun; its options stand in USAGE.

        Raises BookError for what cannot run and TorchrunError when a rank fails.
        """
        asked = parse_line(line)
        cell = self._recorder.current
        push = self._values(asked.push)
        label = re.sub(r"\W", "_", asked.name or f"cell{cell.number}")
        script = slice_cell(
            body,
            self._recorder.cells,
            asked.push,
            asked.pull,
            namespace=self.shell.user_ns,
            number=cell.number,
            first_line=cell.body_line,
        )
        self._scripts[label] = script
        if asked.show:
            print(script.text)
        if asked.pull:  # a job that fails must leave no value of an earlier one
            self._recorder.pulled(asked.pull)
            for name in asked.pull:
                self.shell.user_ns.pop(name, None)
        if asked.recorded and cluster.why_not() and os.environ.get("STRICT") != "1":
            self.shell.user_ns.update(cluster.recorded(asked.recorded, asked.pull))
            return
        ranks, where = asked.nproc * asked.hosts, (asked.hosts, asked.wires)
        job = Job(label, chapter_key(), script, ranks, asked.timeout, push, asked.pull, *where)
        result = _run(job, asked.expect)
        if result:
            self.shell.user_ns.update(result.pulled)

    @line_magic
    def torchrun_script(self, line: str) -> None:
        """Print the script of the distributed cell called LABEL: `%torchrun_script LABEL`."""
        label = line.strip()
        if label not in self._scripts:
            known = ", ".join(self._scripts) or "none yet"
            raise BookError(
                f"%torchrun_script {label}: no distributed cell of that name has run in this "
                f"notebook. Those that have: {known}."
            )
        print(self._scripts[label].text)

    def _values(self, names: tuple[str, ...]) -> dict:
        namespace = self.shell.user_ns
        if missing := [name for name in names if name not in namespace]:
            raise BookError(f"`--push {missing[0]}`: the notebook has no `{missing[0]}`.")
        return {name: namespace[name] for name in names}


def _run(job: Job, expect: str | None) -> launch.Result | None:
    """Run `job`; with `expect`, succeed if and only if it fails in that way."""
    try:
        result = launch.run(job)
    except TorchrunError as error:
        if expect is None:
            raise
        if error.kind != expect:
            raise TorchrunError(f"expected {expect}, but {error}", error.kind) from None
        print(f"as expected, {error}")
        return None
    if expect:
        raise TorchrunError(f"expected {expect}, but every rank ended well", "none")
    return result


def parse_line(line: str) -> argparse.Namespace:
    """The options of a `%%torchrun` line. Raises BookError that says what is wrong."""
    parser = _Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("--nproc", type=_ranks, default=2)
    parser.add_argument("--timeout", type=_seconds, default=120.0)
    parser.add_argument("--name")
    parser.add_argument("--push", type=_names, default=())
    parser.add_argument("--pull", type=_names, default=())
    parser.add_argument("--expect", type=_outcome)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--hosts", type=_hosts, default=1)
    parser.add_argument("--wire")
    parser.add_argument("--recorded")
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise BookError(f"The line of %%torchrun cannot be read: {error}.") from None
    asked = parser.parse_args(words)
    if (asked.hosts > 1) != (asked.wire is not None) or (asked.recorded and asked.hosts == 1):
        raise BookError("--hosts N and --wire RATE go together, and --recorded with them.")
    if asked.hosts * asked.nproc > MOST_RANKS:
        raise BookError(f"--hosts {asked.hosts} --nproc {asked.nproc}: at most {MOST_RANKS} ranks.")
    asked.wires = cluster.parse_wires(asked.wire, asked.hosts) if asked.hosts > 1 else ()
    return asked


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """As argparse calls it; it would end the kernel."""
        raise BookError(f"%%torchrun: {message}. Use: {USAGE}")


def _ranks(text: str) -> int:
    number = int(text) if re.fullmatch(r"-?\d+", text) else 0
    if number > MOST_RANKS:
        raise BookError(
            f"--nproc {text}: at most {MOST_RANKS} ranks. Each is a process of its own that "
            "imports torch on this one machine; for more, copy the script's folder to a cluster."
        )
    if number < 1:
        raise BookError(
            f"--nproc {text}: the number of ranks is a whole number from 1 to {MOST_RANKS}."
        )
    return number


def _hosts(text: str) -> int:
    if not re.fullmatch(r"\d+", text) or not 2 <= int(text) <= cluster.MOST_HOSTS:
        raise BookError(
            f"--hosts {text}: from 2 to {cluster.MOST_HOSTS} hosts, each with `--nproc` ranks."
        )
    return int(text)


def _seconds(text: str) -> float:
    if not re.fullmatch(r"\d+(\.\d+)?", text) or float(text) == 0:
        raise BookError(f"--timeout {text}: give a number of seconds above 0.")
    return float(text)


def _names(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if not all(map(str.isidentifier, names)) or len(set(names)) < len(names):
        raise BookError(f"`{text}`: write different names with commas and no spaces, as in a,b.")
    return names


def _outcome(text: str) -> str:
    if not text.isidentifier():
        raise BookError(
            f"--expect {text}: name the error (ValueError), a signal (SIGABRT, SIGKILL) or timeout."
        )
    return text


def _show_book_error(shell, kind, error, trace, tb_offset=None) -> list[str]:
    """One line in place of a traceback through the book's own code."""
    lines = [f"{kind.__name__}: {error}"]
    shell._showtraceback(kind, error, lines)
    return lines
