"""`make lab`: the pages as notebooks of the reader's own, and JupyterLab as this book pins it."""

import hashlib
import itertools
import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import NoReturn

import nbformat

from helpers import book, book_map, paths
from helpers.book import Chapter
from helpers.lab_copy import lab_notebook
from helpers.lab_prose import LabProse
from helpers.paths import BookError

FOLDER = "lab"
# Loads in no JupyterLab that jupyterlab-myst loads in, and fails noisily on each start.
BROKEN_EXTENSION = "jupyterlab_jupytext"
SETTINGS = {
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False}
}


def lab(options: list[str]) -> NoReturn:
    """Write the copies that are missing and become JupyterLab; `options` are passed on to it."""
    for line in write_copies(paths.ROOT / FOLDER):
        print(line)
    command, environment = server(options)
    sys.stdout.flush()
    os.execve(command[0], command, environment)


def write_copies(folder: Path) -> list[str]:
    """Write a copy of each page into `folder`, in the order of the book; what was done, in lines.

    No file is ever overwritten. Where a page has changed since the reader's copy was made, the
    new copy stands beside it under a name of its own.
    """
    folder.mkdir(exist_ok=True)
    chapters = [book.read(key) for key in book.pages()]
    copies = {
        chapter.key: _Copy(folder, number, chapter) for number, chapter in enumerate(chapters, 1)
    }
    markdown = {chapter.key: "\n\n".join(_prose_of(chapter)) for chapter in chapters}
    prose = LabProse(markdown, {key: copy.path.name for key, copy in copies.items()})
    return [_write(copies[chapter.key], chapter, prose) for chapter in chapters]


class _Copy:
    """Where the copy of a page is, or is to be.

    path: the file. is_there: it was made from the page as it is today. older: the reader's
    copies of the page as it once was.
    """

    def __init__(self, folder: Path, number: int, chapter: Chapter):
        self.digest = hashlib.sha256(chapter.path.read_bytes()).hexdigest()
        stem = chapter.path.stem
        name = re.compile(rf"\d+_{stem}(_new\d*)?\.ipynb")
        mine = sorted(path for path in folder.iterdir() if name.fullmatch(path.name))
        today = [path for path in mine if _made_from(path) == self.digest]
        self.older = [path.name for path in mine if path not in today]
        self.is_there = bool(today)
        self.path = today[-1] if today else _free_name(folder, f"{number:02}_{stem}", bool(mine))


def _made_from(path: Path) -> str:
    """Hash of the page that a copy was made from; "" where the reader changed the file beyond that."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))["metadata"]["book"]["made_from"]
    except (ValueError, KeyError, TypeError):
        return ""


def _free_name(folder: Path, stem: str, is_new: bool) -> Path:
    ends = (f"_new{number}" for number in itertools.count(2))
    ends = itertools.chain(["_new"] if is_new else [""], ends)
    return next(path for end in ends if not (path := folder / f"{stem}{end}.ipynb").exists())


def _prose_of(chapter: Chapter) -> list[str]:
    return [cell.source for cell in chapter.notebook.cells if cell.cell_type == "markdown"]


def _write(copy: _Copy, chapter: Chapter, prose: LabProse) -> str:
    name = f"{FOLDER}/{copy.path.name}"
    if copy.is_there:
        return f"kept     {name}"
    notebook = lab_notebook(chapter, lambda text: prose(book_map.fill(text), chapter.key))
    notebook.metadata["book"] = {"page": chapter.key, "made_from": copy.digest}
    try:
        with open(copy.path, "x", encoding="utf-8") as file:  # x: never over another file
            file.write(nbformat.writes(notebook) + "\n")
    except FileExistsError:
        raise BookError(f"{name} appeared just now. Run `make lab` once more.") from None
    if copy.older:
        return f"written  {name}: the page has changed; your {', '.join(copy.older)} is untouched"
    return f"written  {name}"


def server(options: list[str]) -> tuple[list[str], dict[str, str]]:
    """Command line and environment of JupyterLab over `lab/`.

    Its settings lie in `_build/lab`, so that the reader's own stay as they are.
    """
    home = paths.BUILD / "lab"
    settings = home / "config" / "labconfig" / "default_setting_overrides.json"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(json.dumps(SETTINGS), encoding="utf-8")
    command = [
        *(sys.executable, "-m", "jupyterlab"),
        f"--ServerApp.root_dir={paths.ROOT / FOLDER}",
        f"--ServerApp.jpserver_extensions={{'{BROKEN_EXTENSION}': False}}",
        f"--LabApp.labextensions_path={_extensions(home / 'extensions')}",
        *options,
    ]
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("BOOK_") and name != "JUPYTER_PATH"
    }
    # The kernel `python3` is this environment's, whatever else the reader has installed.
    environment["JUPYTER_PREFER_ENV_PATH"] = "1"
    environment["JUPYTER_CONFIG_PATH"] = _first(home / "config", "JUPYTER_CONFIG_PATH")
    environment["PATH"] = _first(Path(sys.executable).parent, "PATH")
    return command, environment


def _first(path: Path, variable: str) -> str:
    return os.pathsep.join([str(path), *filter(None, [os.environ.get(variable)])])


def _extensions(folder: Path) -> Path:
    """The environment's extensions of JupyterLab but for the broken one, as links."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for extension in (Path(sys.prefix) / "share/jupyter/labextensions").iterdir():
        if extension.name.replace("-", "_") != BROKEN_EXTENSION:
            (folder / extension.name).symlink_to(extension)
    return folder
