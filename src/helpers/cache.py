"""When is a chapter's last run still true? When everything that it depended on is the same.

Prose is not in the key: a page takes the outputs of its last run, cell by cell.
"""

import functools
import hashlib
import importlib.metadata
import json
import os
import platform
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path

import nbformat

from helpers import claims, devices, paths
from helpers.book import Chapter
from helpers.lessons import imported_lessons
from helpers.paths import BookError

RUNS = paths.BUILD / "run"

Uses = Iterable[tuple[str, str]]  # what a run read: ("data", file name) or ("claim", id)


def write_atomic(path: Path, text: str) -> None:
    """Write so that a reader, or an interrupt, meets the old file or the new one, never half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        new.write_text(text, encoding="utf-8")
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def digest(value: object) -> str:
    """Short hash of bytes, or of anything that JSON can hold."""
    data = value if isinstance(value, bytes) else json.dumps(value, sort_keys=True).encode()
    return hashlib.sha256(data).hexdigest()[:16]


def key_parts(chapter: Chapter, parameters: dict, read: Callable[[str], Chapter]) -> dict[str, str]:
    """The hashes that must all be unchanged for a run to stand, by the name of what changes."""
    lessons = {stem: _code(read(_lesson_key(stem))) for stem in _lessons_below(chapter, read)}
    return {
        "its code": digest(_code(chapter)),
        "a lesson it imports": digest(lessons),
        "parameters": digest(parameters),
        **environment(),
    }


@functools.cache
def environment() -> dict[str, str]:
    """Key parts that all chapters share. Read once a build: later changes cost a rerun, no lie."""
    helpers = Path(__file__).parent
    sources = {str(p.relative_to(helpers)): p.read_text("utf-8") for p in helpers.rglob("*.py")}
    found = importlib.metadata.distributions()  # twice where two folders of the path tell of one
    installed = sorted({f"{each.name}=={each.version}" for each in found})
    machine = [platform.system(), platform.machine(), _compiler(), _cpu_features(), devices.gpus()]
    return {
        "helpers": digest(sources),
        "installed versions": digest([platform.python_version(), *installed]),
        "the machine or its compiler": digest(machine),
    }


@functools.cache
def inventory() -> dict[tuple[str, str], str]:
    """Hash of every data file and every claim row, as they stand when the build begins."""
    files = (p for p in paths.DATA.rglob("*") if p.is_file())
    found = {("data", p.relative_to(paths.DATA).as_posix()): digest(p.read_bytes()) for p in files}
    rows = claims.load() if ("data", "claims.yml") in found else {}
    return found | {("claim", name): digest(asdict(row)) for name, row in rows.items()}


def why_stale(key: str, parts: dict[str, str]) -> str | None:
    """What changed since the chapter's last run, or None when that run still stands."""
    try:
        known = json.loads(_key_file(key).read_text("utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return "not executed before"
    if not run_path(key).exists():
        return "not executed before"
    for name, value in parts.items():
        if known["parts"].get(name) != value:
            return f"{name} changed"
    for kind, name, value in known["uses"]:
        if inventory().get((kind, name)) != value:
            return f"{kind} {name} changed"
    return None


def store(key: str, notebook: nbformat.NotebookNode, parts: dict[str, str], uses: Uses) -> None:
    """Keep a successful run. The key goes first and comes last: it never names another's run."""
    _key_file(key).unlink(missing_ok=True)
    write_atomic(run_path(key), nbformat.writes(notebook))
    hashes = [(kind, name, inventory().get((kind, name))) for kind, name in sorted(set(uses))]
    write_atomic(_key_file(key), json.dumps({"parts": parts, "uses": hashes}, indent=1))


def load(key: str) -> nbformat.NotebookNode:
    """The executed notebook of a chapter's last successful run."""
    try:
        return nbformat.read(run_path(key), as_version=4)
    except FileNotFoundError:
        raise BookError(f"{key} has not been executed. Run: make book") from None


def run_path(key: str) -> Path:
    return RUNS / f"{key}.ipynb"


def _key_file(key: str) -> Path:
    return RUNS / f"{key}.key.json"


def _code(chapter: Chapter) -> list:
    return [chapter.front.get("kernelspec"), [(c.source, list(c.tags)) for c in chapter.cells]]


def _lessons_below(chapter: Chapter, read: Callable[[str], Chapter]) -> set[str]:
    """Stems of all lessons that a chapter imports, and that those import, and so on."""
    found: set[str] = set()
    waiting = [chapter]
    while waiting:
        sources = [cell.source for cell in waiting.pop().cells]
        stems = set().union(*map(imported_lessons, sources)) - found
        found |= stems
        waiting += [read(_lesson_key(stem)) for stem in stems]
    return found


def _lesson_key(stem: str) -> str:
    for path in paths.CHAPTERS.rglob(f"{stem}.md"):
        return path.relative_to(paths.CHAPTERS).with_suffix("").as_posix()
    raise BookError(f"helpers.lessons.{stem} is imported, but no chapter is called {stem}.md.")


def _compiler() -> str:
    found = devices.compiler()
    if found is None:
        raise BookError(
            "No C++ compiler found, and torch.compile needs one. "
            "Install it (Debian: apt install g++; macOS: xcode-select --install), or set CXX."
        )
    return found["version"]


def _cpu_features() -> str:
    if platform.system() == "Darwin":
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(command, capture_output=True, text=True).stdout
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((x for x in lines if x.startswith(("flags", "Features"))), "")
