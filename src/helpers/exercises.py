"""Exercises, and programs that are run to be judged: kindly."""

import itertools
import linecache
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from helpers import paths
from helpers.paths import recording

_loads = itertools.count(1)


@contextmanager
def exercise(label: str):
    """Check an exercise: `with exercise("ex-jit"): assert ...` prints solved, or not yet and why.

    A failed assert, a blank (NotImplementedError, also inside ranks or compiled code) and a name
    that is not defined yet are "not yet"; other errors are the reader's and show as they are.
    While the book is built the solution runs, and any failure raises.
    """
    try:
        yield
    except Exception as error:
        if recording() or not (reason := _not_yet(error)):
            raise
        print(f"{label}: not yet: {reason}")
    else:
        print(f"{label}: solved")


def _not_yet(error: BaseException | None) -> str:
    """Why the reader is not there yet; empty where `error` is something else."""
    if isinstance(error, AssertionError | NameError):
        return str(error) or "the check does not hold"
    while error is not None:
        if isinstance(error, NotImplementedError) or "NotImplementedError" in str(error):
            return str(error) or "the blank is still to be filled"
        error = error.__cause__ or error.__context__
    return ""


def load_program(source: str, name: str = "program", main: bool = False) -> ModuleType:
    """Run `source` as a new module and return it.

    With `main` it runs as a script: `if __name__ == "__main__":` holds.
    """
    # A name of its own for each load: tracebacks and inspect.getsource find these very lines.
    file = f"<{name}, run {next(_loads)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    module = ModuleType("__main__" if main else name.replace(" ", "_"))
    module.__file__ = file
    if not main:
        sys.modules[module.__name__] = module  # dataclasses and inspect look there
    exec(compile(source, file, "exec"), module.__dict__)
    return module


def run_program(source: str, timeout: float = 60) -> subprocess.CompletedProcess:
    """Run `source` as a script in a process of its own; stdout and stderr come as text.

    For programs that may hang or end their process. After `timeout` seconds the process and
    what it started in its group end, and AssertionError says so.
    """
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "program.py"
        script.write_text(source, encoding="utf-8")
        command = [sys.executable, str(script)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen(command, cwd=folder, start_new_session=True, **pipes)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the program still runs after {timeout:g} seconds") from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def run_on_ranks(
    source: str, nproc: int = 2, pull: tuple[str, ...] = (), timeout: float = 60
) -> dict[str, list]:
    """Run `source` on ranks, as a %%torchrun cell runs; the names in `pull`, lists in rank order.

    For checks of programs that use `helpers.ranks.init_ranks`. Where a rank fails, or after
    `timeout` seconds, every process of the run ends, and AssertionError says why.
    """
    from helpers.launch import TorchrunError

    try:
        return run_job("checked", source, nproc, pull, timeout)
    except TorchrunError as error:
        raise AssertionError(str(error)) from None


def run_job(label, source, nproc, pull=(), timeout=120.0) -> dict[str, list]:
    """As run_on_ranks, under a name; raises TorchrunError."""
    from helpers import launch  # half a second that programs without ranks need not pay
    from helpers.slicing import slice_cell

    script = slice_cell(source, [], pull=pull)
    job = launch.Job(label, paths.chapter_key(), script, nproc, timeout, pull=tuple(pull))
    return launch.run(job).pulled
