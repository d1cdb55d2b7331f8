"""Exercises and broken programs: what the reader writes is run and judged, kindly."""

import argparse
import io
import itertools
import linecache
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import contextmanager, redirect_stdout
from difflib import unified_diff
from pathlib import Path
from types import ModuleType

from helpers import paths
from helpers.paths import BookError, read_data, recording

_programs: dict[str, str] = {}  # source of each broken program as the reader last ran it
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


def check(name: str, *, cure: bool = False) -> None:
    """Judge the broken program `name` as the reader last ran it: prints cured, or not yet and why.

    `cure=True` judges the stored cure instead, and shows what it changes.
    """
    original = _stored(name, "program.py")
    judge = load_check(name)
    if cure:
        source = _stored(name, "cure.py")
        changes = unified_diff(original.splitlines(), source.splitlines(), lineterm="", n=1)
        print(*list(changes)[2:], sep="\n")  # without the names of files
        judge(source)
    elif name not in _programs:
        raise BookError(f"Run the cell that starts with %%broken {name} first.")
    else:
        source = _programs[name]
        try:
            judge(source)
        except Exception as error:
            kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
            return print(f"{name}: not yet: {kind}{error}")
        if source.strip() == original.strip():
            raise BookError(f"data/broken/{name}/check.py accepts the broken program.")
    print(f"{name}: cured")


def load_check(name: str) -> Callable[[str], None]:
    """The function `check(source)` of data/broken/<name>/check.py, with its prints dropped."""
    module = load_program(_stored(name, "check.py"), f"check of {name}")

    def judge(source: str) -> None:
        with redirect_stdout(io.StringIO()):
            module.check(source)

    return judge


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
        return _run_ranks("checked", source, nproc, pull, timeout)
    except TorchrunError as error:
        raise AssertionError(str(error)) from None


def _run_ranks(label, source, nproc, pull=(), timeout=120.0) -> dict[str, list]:
    from helpers import launch  # half a second that programs without ranks need not pay
    from helpers.slicing import slice_cell

    script = slice_cell(source, [], pull=pull)
    job = launch.Job(label, paths.chapter_key(), script, nproc, timeout, pull=tuple(pull))
    return launch.run(job).pulled


def broken(line: str, cell: str) -> None:
    """%%broken NAME [--nproc N] [--expect ErrorName]: run the cell as a program; remember it.

    `--nproc` runs it on ranks, as %%torchrun does. `--expect` names the error that is the
    symptom: its last line is shown, and the notebook goes on. While the book is built the cell
    must equal data/broken/NAME/program.py, and the expected error must happen.
    """
    parser = argparse.ArgumentParser(prog="%%broken", exit_on_error=False, add_help=False)
    parser.add_argument("name")
    parser.add_argument("--nproc", type=int, default=0)
    parser.add_argument("--expect", default="")
    parser.error = _refuse
    options = parser.parse_args(shlex.split(line))
    original = _stored(options.name, "program.py")
    if recording() and cell.strip() != original.strip():
        raise BookError(f"This cell differs from data/broken/{options.name}/program.py.")
    _programs[options.name] = cell
    try:
        if options.nproc:
            _run_ranks(options.name, cell, options.nproc)
        else:
            load_program(cell, options.name, main=True)
    except Exception as error:
        if getattr(error, "kind", type(error).__name__) != options.expect:
            raise
        print(f"{options.expect}: {error}")
    else:
        if options.expect and recording():
            raise BookError(f"%%broken {options.name} raised no {options.expect}.")


def _refuse(message: str) -> None:
    raise BookError(f"%%broken: {message}. Write: %%broken NAME [--nproc N] [--expect ErrorName]")


def _stored(name: str, file: str) -> str:
    if not (paths.DATA / "broken" / name / "program.py").is_file():
        known = sorted(path.parent.name for path in paths.DATA.glob("broken/*/program.py"))
        raise BookError(f"There is no broken program {name!r}. There are: {', '.join(known)}.")
    return read_data(f"broken/{name}/{file}")


def register(ipython) -> None:
    """Make %%broken known to this notebook."""
    ipython.register_magic_function(broken, "cell")
