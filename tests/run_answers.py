"""Runs answers to exercises as a notebook would, each in a namespace of its own.

Reads a line of JSON for each chapter: {chapter, folder, file, answers: [[cell, ...], ...], limit}, and
runs its answers in a process forked for them, since most of what a chapter would take is `import
torch`. It writes [[output, error or null], ...] to `file` in `folder`, so that no print of a cell can
spoil it, and ends after `limit` seconds. The exit code goes to stdout.
"""

import contextlib
import io
import json
import os
import signal
import sys

import sympy  # noqa: F401 - what Dynamo takes longest to import; Dynamo imports triton, too early
import torch  # noqa: F401
from IPython.core.interactiveshell import InteractiveShell


def run(shell: InteractiveShell, cells: list[str]) -> tuple[str, str | None]:
    """What the last cell printed, and the error of the first cell that raised."""
    shell.reset(new_session=False)
    if "torch._dynamo" in sys.modules:
        sys.modules["torch._dynamo"].reset()
    output = ""
    for cell in cells:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            done = shell.run_cell(cell)
        output = printed.getvalue()
        if error := done.error_before_exec or done.error_in_exec:
            return output, f"{type(error).__name__}: {error}\n{output[-3000:]}"
    return output, None


def run_all(chapter: str, folder: str, file: str, answers: list[list[str]], limit: int) -> None:
    signal.alarm(limit)
    os.environ["BOOK_CHAPTER"] = chapter
    os.chdir(folder)
    shell = InteractiveShell.instance(colors="nocolor")
    shell.run_cell("%load_ext helpers")
    results = [run(shell, cells) for cells in answers]
    with open(file, "w", encoding="utf-8") as out:
        json.dump(results, out)


if __name__ == "__main__":
    for line in sys.stdin:
        if (pid := os.fork()) == 0:
            code = 1
            try:
                with open(os.devnull) as nothing:
                    os.dup2(nothing.fileno(), 0)
                os.dup2(2, 1)
                run_all(**json.loads(line))
                code = 0
            finally:
                os._exit(code)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
