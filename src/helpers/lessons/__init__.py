"""Chapters as modules: `from helpers.lessons.small_gpt import GPT` runs `small_gpt.md`.

Only the cells tagged `export` run, compiled with the chapter's file name and line numbers.
Tracebacks point into the `.md`, `inspect.getsource` and Dynamo find the code, and classes pickle.
A script that leaves this repository carries `lesson_source(stem)` as `helpers/lessons/<stem>.py`.
"""

import difflib
import importlib.abc
import importlib.util
import linecache
import sys
from collections.abc import Iterable
from pathlib import Path

from helpers import paths
from helpers.lessons._code import check_export, imported_lessons
from helpers.lessons._fences import FencedCell, scan
from helpers.paths import BookError

__all__ = [
    "FencedCell",
    "check_export",
    "imported_lessons",
    "lesson_source",
    "near_match",
    "needed_lessons",
    "scan",
]


def near_match(word: str, known: Iterable[str]) -> str:
    """ " Did you mean x?", or nothing, to be put at the end of an error message."""
    near = difflib.get_close_matches(word, list(known), n=2)
    return f" Did you mean {' or '.join(near)}?" if near else ""


def lesson_source(stem: str) -> str:
    """Text of chapter `stem` with every line outside its export cells blank: same line numbers.

    Raises ModuleNotFoundError (no such chapter), SyntaxError (with the chapter's file and line)
    and BookError (nothing exported, or an export cell that runs code).
    """
    path = _chapter(stem)
    name = path.relative_to(paths.ROOT).as_posix()
    text = path.read_text(encoding="utf-8")
    lines = [""] * len(text.split("\n"))
    for cell in scan(text, name):
        if "export" in cell.tags:
            lines[cell.line - 1 : cell.line - 1 + len(cell.lines)] = cell.lines
    source = "\n".join(lines)
    if not source.strip():
        raise BookError(f"{name} exports nothing. Tag the cells that others import `export`.")
    check_export(source, str(path))
    return source


def needed_lessons(source: str) -> dict[str, str]:
    """Every lesson that a cell or script needs, also through other lessons: stem -> source.

    Raises what `lesson_source` raises, and BookError where lessons import each other in a circle.
    """
    found: dict[str, str] = {}

    def collect(stem: str, trail: tuple[str, ...]) -> None:
        if stem in trail:
            circle = " -> ".join([*trail[trail.index(stem) :], stem])
            raise BookError(
                f"Chapters import each other in a circle: {circle}. "
                "Move what they share into the one that comes first in the book."
            )
        if stem not in found:
            text = lesson_source(stem)
            for needed in sorted(imported_lessons(text)):
                collect(needed, (*trail, stem))
            found[stem] = text

    for stem in sorted(imported_lessons(source)):
        collect(stem, ())
    return found


def _chapters() -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for path in sorted(paths.CHAPTERS.rglob("*.md")):
        found.setdefault(path.stem, []).append(path)
    return found


def _chapter(stem: str) -> Path:
    chapters = _chapters()
    if stem not in chapters:
        # Without `name=`: Python hides a ModuleNotFoundError that names the module it looked for
        # from `from helpers.lessons import typo`, and the hint with it.
        raise ModuleNotFoundError(
            f"No chapter is called {stem}.md.{near_match(stem, chapters)} "
            f"helpers.lessons holds one module for each file in {paths.CHAPTERS.name}/."
        )
    if len(chapters[stem]) > 1:
        both = " and ".join(path.relative_to(paths.ROOT).as_posix() for path in chapters[stem])
        raise BookError(
            f"{both} have the same name. Rename one: a chapter is imported by its stem."
        )
    return chapters[stem][0]


class _LessonFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `helpers.lessons.<stem>` in the chapters and runs it there."""

    def find_spec(self, fullname, path=None, target=None):
        package, _, stem = fullname.rpartition(".")
        if package != __name__ or stem.startswith("_"):
            return None
        return importlib.util.spec_from_file_location(fullname, _chapter(stem), loader=self)

    def exec_module(self, module) -> None:
        file = module.__spec__.origin
        source = needed_lessons(f"import {module.__name__}")[module.__name__.rpartition(".")[2]]
        # mtime None: linecache never re-reads the file, so an edit does not bring the prose back.
        lines = [line + "\n" for line in source.split("\n")]
        linecache.cache[file] = (len(source), None, lines, file)
        exec(compile(source, file, "exec", dont_inherit=True), module.__dict__)


sys.meta_path.insert(0, _LessonFinder())
