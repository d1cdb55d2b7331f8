"""Broken programs: the reader finds the cause, mends the program, and is judged."""

import argparse
import io
import re
import shlex
from collections.abc import Callable
from contextlib import redirect_stdout
from difflib import unified_diff

from helpers import paths
from helpers.exercises import load_program, run_job
from helpers.paths import BookError, read_data, recording

_programs: dict[str, str] = {}  # source of each broken program as the reader last ran it


def check(name: str, *, cure: bool = False) -> None:
    """Judge the broken program `name` as the reader last ran it: prints cured, or not yet and why.

    `cure=True` judges the stored cure instead, and shows what it changes. While the book is built
    the program must be rejected for its symptom, or the error of the check is raised.
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
            if recording() and not re.search(symptom(name), str(error)):
                raise
            kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
            return print(f"{name}: not yet: {kind}{error}")
        if source.strip() == original.strip():
            raise BookError(f"data/broken/{name}/check.py accepts the broken program.")
    print(f"{name}: cured")


def symptom(name: str) -> str:
    """Pattern of what its check says of the broken program: data/broken/<name>/symptom.txt."""
    return _stored(name, "symptom.txt").strip()


def load_check(name: str) -> Callable[[str], None]:
    """The function `check(source)` of data/broken/<name>/check.py, with its prints dropped."""
    module = load_program(_stored(name, "check.py"), f"check of {name}")

    def judge(source: str) -> None:
        with redirect_stdout(io.StringIO()):
            module.check(source)

    return judge


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
            run_job(options.name, cell, options.nproc)
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
