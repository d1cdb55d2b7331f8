"""Runs answers to exercises as a notebook would, each in a namespace of its own.

Reads [[cell, ...], ...] as JSON on stdin. Writes [[output, error or null], ...] to the file
that the first argument names, so that no print of a cell can spoil it.
"""

import contextlib
import io
import json
import sys

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


if __name__ == "__main__":
    shell = InteractiveShell.instance(colors="nocolor")
    shell.run_cell("%load_ext helpers")
    results = [run(shell, cells) for cells in json.load(sys.stdin)]
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(results, file)
