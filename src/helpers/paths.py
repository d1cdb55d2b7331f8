"""Where things are, which chapter is running, and a note of what a run has read."""

import json
import os
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = ROOT / "chapters"
DATA = ROOT / "data"
BUILD = ROOT / "_build"


class BookError(Exception):
    """A mistake of the author or the reader; the message says what to do about it."""


def recording() -> bool:
    """True while the builder or nbval executes a chapter: outputs must repeat."""
    return os.environ.get("BOOK_RECORDING") == "1"


def chapter_key() -> str:
    """Key of the chapter that this kernel runs, such as "capture/capture_timing".

    The builder names it in BOOK_CHAPTER. A Jupyter server tells the notebook's path in
    JPY_SESSION_NAME; a lab copy (03_stem, 03_stem_new) is found by its stem. Elsewhere: "notebook".
    """
    if key := os.environ.get("BOOK_CHAPTER"):
        return key
    name = Path(os.environ.get("JPY_SESSION_NAME", "")).stem
    stem = re.sub(r"^\d+_|_new\d*$", "", name)
    found = [p for p in CHAPTERS.rglob(f"{stem}.md")] if stem else []
    return found[0].relative_to(CHAPTERS).with_suffix("").as_posix() if found else "notebook"


def note_use(kind: str, name: str) -> None:
    """Record that this run read `name`, for the cache key. Ranks inherit BOOK_USES.

    One O_APPEND write of a short line is atomic, so that ranks may share the file.
    """
    if path := os.environ.get("BOOK_USES"):
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"kind": kind, "name": name}) + "\n")


def read_data(name: str) -> str:
    """Text of `data/<name>`; the cache remembers that this chapter depends on it."""
    path = DATA / name
    if not path.is_file():
        raise BookError(
            f"data/{name} does not exist. Files there: {sorted(p.name for p in DATA.glob('*'))}"
        )
    note_use("data", name)
    return path.read_text(encoding="utf-8")
