"""The table of contents, and the chapters as notebooks. What they may say stands in `form`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml
from jupytext.myst import MystMetadataParsingError, myst_to_notebook
from nbformat import NotebookNode

from helpers import form, paths
from helpers.lessons import FencedCell, near_match, scan
from helpers.paths import BookError


@dataclass(frozen=True)
class Cell:
    """A code cell: its number among the chapter's code cells, and its first line in the `.md`."""

    number: int
    line: int
    source: str
    tags: tuple[str, ...]


@dataclass(frozen=True)
class Chapter:
    """A page as written: `front` is its front matter, `notebook` all its cells, not executed."""

    key: str
    path: Path
    front: dict
    cells: list[Cell]
    notebook: NotebookNode


def pages() -> list[str]:
    """Keys of all pages in the order of `_toc.yml`, such as "start/small_gpt".

    Raises BookError unless entries and files of `chapters/` are the same, each once, and each
    with a stem of its own that can be imported.
    """
    toc = paths.ROOT / "_toc.yml"
    if not toc.is_file():
        raise BookError(f"There is no _toc.yml in {paths.ROOT}. It lists the pages of the book.")
    keys = list(_toc_entries(_mapping(toc.read_text(encoding="utf-8"), "_toc.yml")))
    files = _files()
    for key in keys:
        if key not in files:
            hint = near_match(key, files)
            raise BookError(f"_toc.yml names chapters/{key}, but there is no such .md file.{hint}")
        if keys.count(key) > 1:
            raise BookError(f"_toc.yml names chapters/{key} twice. Leave one entry.")
    for key in files:
        if key not in keys:
            raise BookError(f"No entry of _toc.yml names chapters/{key}.md. Add one, or remove it.")
    _check_stems(files)
    return keys


def chapters() -> list[str]:
    """Keys of the pages that hold code cells, in order."""
    return [key for key in pages() if scan(_read_text(key), f"chapters/{key}.md")]


def chosen(names: list[str]) -> list[str]:
    """The named chapters, or all when none is named. Raises BookError for one that there is not."""
    known = chapters()
    if unknown := [name for name in names if name not in known]:
        raise BookError(f"No such chapter: {', '.join(unknown)}. There are: {', '.join(known)}")
    return names or known


def read(key: str) -> Chapter:
    """The page `key`; BookError names the file and line of what is wrong with its form."""
    name = f"chapters/{key}.md"
    text = _read_text(key)
    front = _front_matter(text, name)
    fenced = scan(text, name)
    form.check_front_matter(front, bool(fenced), name)
    for seen in fenced:
        where = f"{name}, line {seen.opening}"
        options = _mapping(seen.options, f"{where}: the options of this code cell")
        form.check_options(options, seen.tags, where)
    form.check_needs(front.get("needs", {}), _files(), name)
    try:
        notebook = myst_to_notebook(text)
    except MystMetadataParsingError as error:
        raise BookError(f"{name}: {error}") from None
    cells = _cells(fenced, notebook, name)
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    form.check_optional(front.get("optional", []), prose, name)
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"  # nbformat draws one at random: the same page, the same notebook
    kernel = {"language": "python", **front["kernelspec"]} if cells else None
    notebook.metadata = NotebookNode({"kernelspec": kernel} if kernel else {})
    return Chapter(key, paths.CHAPTERS / f"{key}.md", front, cells, notebook)


def _files() -> list[str]:
    found = paths.CHAPTERS.rglob("*.md")
    keys = (path.relative_to(paths.CHAPTERS).with_suffix("").as_posix() for path in found)
    return sorted(key for key in keys if not key.startswith(".") and "/." not in key)


def _toc_entries(node: object) -> Iterator[str]:
    if not isinstance(node, dict):
        raise BookError(f"_toc.yml: {node!r} is not an entry. Write `- file: chapters/...`.")
    if entry := node.get("root") or node.get("file"):
        prefix, _, key = entry.removesuffix(".md").partition("/")
        if prefix != "chapters" or not key:
            raise BookError(f"_toc.yml names {entry}. Pages live in chapters/.")
        yield key
    for group in ("parts", "chapters", "sections"):
        for child in node.get(group) or []:
            yield from _toc_entries(child)


# Pages that every part has one of. Nothing is imported from them.
_IN_EVERY_PART = {"topic", "claims"}


def _check_stems(files: list[str]) -> None:
    seen: dict[str, str] = {}
    for key in files:
        stem = key.rpartition("/")[2]
        if not re.fullmatch(r"[a-z][a-z0-9_]*", stem):
            raise BookError(
                f"chapters/{key}.md: name it with small letters, digits and _, a letter first. "
                "Chapters are imported by this name, and carry no number."
            )
        if stem in seen and stem not in _IN_EVERY_PART:
            raise BookError(
                f"chapters/{seen[stem]}.md and {key}.md have the same name. Rename one."
            )
        seen[stem] = key


def _read_text(key: str) -> str:
    path = paths.CHAPTERS / f"{key}.md"
    if not path.is_file():
        raise BookError(f"There is no chapters/{key}.md.{near_match(key, _files())}")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BookError(f"chapters/{key}.md is not UTF-8 text: {error}.") from None


def _mapping(text: str, what: str) -> dict:
    """The YAML mapping in `text`; the empty text is the empty mapping."""
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BookError(f"{what} cannot be read as YAML: {' '.join(str(error).split())}.") from None
    if found is not None and not isinstance(found, dict):
        raise BookError(f"{what} cannot be read: write lines of the form `field: value`.")
    return found or {}


def _front_matter(text: str, name: str) -> dict:
    match = re.match(r"---[ \t]*\n(.*?)^---[ \t]*$", text, re.DOTALL | re.MULTILINE)
    return _mapping(match[1], f"{name}: the front matter") if match else {}


def _cells(fenced: list[FencedCell], notebook: NotebookNode, name: str) -> list[Cell]:
    """The scanner's cells, proved to be what jupytext read: so lines and exports are right."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for seen, cell in zip(fenced, code, strict=False):
        if "\n".join(seen.lines).rstrip("\n") != cell.source.rstrip("\n"):
            raise BookError(
                f"{name}, line {seen.opening}: jupytext does not see this code cell, or not all "
                "of it. Leave a blank line between HTML or a list and a code cell."
            )
    if len(fenced) != len(code):
        raise BookError(
            f"{name}: {len(fenced)} code cells are written, jupytext sees {len(code)}. Leave a "
            "blank line between HTML or a list and a code cell."
        )
    return [
        Cell(number, seen.line, cell.source, seen.tags)
        for number, (seen, cell) in enumerate(zip(fenced, code, strict=True), start=1)
    ]
