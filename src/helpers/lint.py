"""Ruff over the package, the tests, and every code cell of the chapters.

Plain ruff skips a cell that starts with a magic, and so the body of each `%%torchrun` cell.
Here the chapters become throwaway notebooks in which those lines are comments; what ruff says
is reported at the line of the `.md`.
"""

import difflib
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
from nbformat import v4

from helpers import book, paths
from helpers.book import Cell, Chapter
from helpers.cache import write_atomic

RUFF = str(Path(sys.executable).with_name("ruff"))
CODE = ["src", "tests"]
PYTHON_MAGIC = re.compile(r"%%(torchrun|time|timeit|capture|prun)\b")
HIDDEN = "# "


def lint(fix: bool) -> int:
    """Report everything that ruff has to say; 1 if that is anything. `fix` formats the cells."""
    package = [subprocess.run([RUFF, *args, *CODE], cwd=paths.ROOT) for args in _package_checks()]
    faults = chapter_faults(fix)
    print("\n".join(faults), end="\n" if faults else "")
    return int(any(done.returncode for done in package) or bool(faults))


def _package_checks() -> list[list[str]]:
    return [["check", "--quiet"], ["format", "--check", "--quiet"]]


def chapter_faults(fix: bool = False) -> list[str]:
    """What is wrong with the code cells, each fault at its line in the chapter."""
    chapters = [book.read(key) for key in book.chapters()]
    if not chapters:
        return []
    with tempfile.TemporaryDirectory() as folder:
        files = {_write(chapter, Path(folder)): chapter for chapter in chapters}
        faults = _check(files)
        config = ["--config", str(paths.ROOT / "pyproject.toml")]
        subprocess.run([RUFF, "format", "--quiet", *config, folder], check=False)
        for path, chapter in files.items():
            faults += _format_faults(chapter, path, fix)
    return sorted(faults)


def _write(chapter: Chapter, folder: Path) -> Path:
    path = (folder / f"{chapter.key}.ipynb").resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    cells = [v4.new_code_cell(_for_ruff(cell)) for cell in chapter.cells]
    nbformat.write(v4.new_notebook(cells=cells), path)
    return path


def _is_python(cell: Cell) -> bool:
    return not cell.source.startswith("%%") or bool(PYTHON_MAGIC.match(cell.source))


def _for_ruff(cell: Cell) -> str:
    """Same lines, with a cell magic as a comment; nothing of a cell that is not Python."""
    if not _is_python(cell):
        return ""
    return HIDDEN + cell.source if cell.source.startswith("%%") else cell.source


def _check(files: dict[Path, Chapter]) -> list[str]:
    config = ["--config", str(paths.ROOT / "pyproject.toml")]
    command = [RUFF, "check", "--quiet", "--output-format", "json", *config, *files]
    done = subprocess.run(command, capture_output=True, text=True)
    if not done.stdout:
        return [f"ruff did not run: {done.stderr.strip()}"]
    faults = []
    for found in json.loads(done.stdout):
        chapter = files[Path(found["filename"])]
        line = chapter.cells[found["cell"] - 1].line + found["location"]["row"] - 1
        faults.append(f"chapters/{chapter.key}.md:{line}: {found['code']} {found['message']}")
    return faults


def _format_faults(chapter: Chapter, path: Path, fix: bool) -> list[str]:
    formatted = nbformat.read(path, as_version=4).cells
    changed = []
    for cell, node in zip(chapter.cells, formatted, strict=True):
        new = node.source.removeprefix(HIDDEN) if cell.source.startswith("%%") else node.source
        if _is_python(cell) and new != cell.source:
            changed.append((cell, new))
    if fix:
        _replace_cells(chapter, changed)
        return []
    return [
        f"chapters/{chapter.key}.md:{cell.line}: not as `ruff format` writes it "
        "(python -m helpers lint --fix):\n" + _diff(cell.source, new)
        for cell, new in changed
    ]


def _replace_cells(chapter: Chapter, changed: list[tuple[Cell, str]]) -> None:
    lines = chapter.path.read_text("utf-8").split("\n")
    for cell, new in reversed(changed):  # from the end, so that earlier lines keep their numbers
        first = cell.line - 1
        lines[first : first + cell.source.count("\n") + 1] = new.split("\n")
    if changed:
        write_atomic(chapter.path, "\n".join(lines))


def _diff(old: str, new: str) -> str:
    lines = difflib.unified_diff(old.split("\n"), new.split("\n"), "", "", "", "", 1, "")
    return "\n".join(f"    {line}" for line in list(lines)[3:])
