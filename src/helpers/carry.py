"""The folder of a script: the script, what was pushed, and the helpers and lessons it imports.

Such a folder can be copied to a cluster as it is, and runs where the book is not installed.
"""

import ast
import os
from pathlib import Path

from helpers import _HOME, paths
from helpers.lessons import needed_lessons
from helpers.paths import BookError

HERE = Path(__file__).parent
LESSONS_INIT = (
    b'"""Lessons as their chapters exported them; line numbers are those of the .md."""\n'
)


def script_folder(label: str, script: str, pushed: bytes | None) -> dict[str, bytes]:
    """Content of each file of the folder, by its path within: the same for the same script."""
    lessons = needed_lessons(script)
    files = {f"{label}.py": script.encode(), "helpers/__init__.py": _source("__init__")}
    if pushed is not None:
        files[f"{label}.pt"] = pushed
    if lessons:
        files["helpers/lessons/__init__.py"] = LESSONS_INIT
    for stem, text in lessons.items():
        files[f"helpers/lessons/{stem}.py"] = text.encode()
    waiting = set().union(*map(_imported, [script, *lessons.values()]))
    while waiting:
        module = waiting.pop()
        files[f"helpers/{module}.py"] = _source(module)
        needed = _imported(files[f"helpers/{module}.py"].decode())
        waiting |= {name for name in needed if f"helpers/{name}.py" not in files}
    return files


def write(files: dict[str, bytes], folder: Path) -> None:
    """Write a new folder."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def publish(files: dict[str, bytes], folder: Path, label: str, scratch: Path) -> None:
    """Bring `files` into a folder that other kernels use: each is the old or the new, never half.

    `scratch` is a folder of this run on the same disk: what a kill leaves there goes with it.
    """
    for number, (name, content) in enumerate(files.items()):
        target = folder / name
        if target.is_file() and target.read_bytes() == content:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        (scratch / f"publish.{number}").write_bytes(content)
        os.replace(scratch / f"publish.{number}", target)
    if f"{label}.pt" not in files:
        (folder / f"{label}.pt").unlink(missing_ok=True)


def published(chapter: str) -> Path:
    """The folder where the scripts of a chapter are kept for running by hand."""
    return paths.BUILD / "cells" / chapter


def _source(module: str) -> bytes:
    file = HERE / f"{module}.py"
    if not file.is_file():
        raise BookError(f"The cell imports helpers.{module}, and there is no such module.")
    return file.read_bytes()


def _imported(source: str) -> set[str]:
    """Modules of this package, lessons apart, that `source` imports, also within functions."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "helpers":
            found |= {f"helpers.{_HOME.get(name.name, name.name)}" for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    names = {name.removeprefix("helpers.") for name in found if name.startswith("helpers.")}
    return {name for name in names if name.partition(".")[0] != "lessons"}
