"""Reference outputs: what checked cells must print, stripped of all that may differ."""

import difflib
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode, v4

from helpers import book, cache, paths
from helpers.book import Chapter
from helpers.cache import write_atomic
from helpers.execute import executed_cells
from helpers.paths import BookError

REFERENCES = paths.ROOT / "tests" / "outputs"
CHECKED = "nbval-check-output"


def reference(chapter: Chapter, run: NotebookNode) -> NotebookNode:
    """All code cells of a chapter, with outputs where they are checked.

    nbval compares a cell only when its execution_count is set, so that is the cell's number.
    """
    cells = []
    for cell, ran in zip(chapter.cells, executed_cells(run), strict=True):
        checked = CHECKED in cell.tags
        node = v4.new_code_cell(cell.source, id=f"cell-{cell.number}")
        node.metadata["tags"] = list(cell.tags)
        node.execution_count = cell.number if checked else None
        node.outputs = comparable(ran.outputs) if checked else []
        cells.append(node)
    return v4.new_notebook(cells=cells, metadata={"kernelspec": chapter.front["kernelspec"]})


def comparable(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """What is compared of a cell's outputs: streams and plain text. Images and HTML are not."""
    kept = []
    for output in outputs:
        if output.output_type == "stream" and kept and kept[-1].get("name") == output.name:
            kept[-1].text += output.text  # a busy machine flushes one cell's print in pieces
        elif output.output_type == "stream":
            kept.append(v4.new_output("stream", name=output.name, text=output.text))
        elif "text/plain" in output.get("data", {}):
            data = {"text/plain": output.data["text/plain"]}
            kept.append(v4.new_output("display_data", data=data))
    return kept


def stored_references() -> dict[str, Path]:
    """Every reference file, by the key of its chapter."""
    found = sorted(REFERENCES.rglob("*.ipynb"))
    return {path.relative_to(REFERENCES).with_suffix("").as_posix(): path for path in found}


def problems() -> list[str]:
    """Why nbval would compare less than it seems to: missing, stale, empty or drifted references."""
    stored = stored_references()
    chapters = {key: book.read(key) for key in book.chapters()}
    found = [f"{key}: a reference without a chapter" for key in stored if key not in chapters]
    for key, chapter in chapters.items():
        if key in stored:
            cells = nbformat.read(stored[key], as_version=4).cells
            found += [f"{key}: {problem}" for problem in _cell_problems(chapter, cells)]
        else:
            found.append(f"{key}: no reference")
    return found


def _cell_problems(chapter: Chapter, cells: list[NotebookNode]) -> Iterator[str]:
    if len(cells) != len(chapter.cells):
        yield f"{len(chapter.cells)} cells, and {len(cells)} in the reference"
    for cell, node in zip(chapter.cells, cells, strict=False):
        if (cell.source, list(cell.tags)) != (node.source, node.metadata.get("tags", [])):
            yield f"cell {cell.number}: the reference holds other source or tags"
        elif CHECKED in cell.tags and not (node.outputs and node.execution_count):
            yield f"cell {cell.number}: checked, but its reference has no output"


def update(keys: list[str], accept: bool) -> None:
    """Show how the last runs differ from the references, and replace these if that is accepted."""
    new = {key: reference(book.read(key), cache.load(key)) for key in keys}
    old = {key: nbformat.read(p, as_version=4) for key, p in stored_references().items()}
    gone = [key for key in old if key not in book.chapters()]
    changed = [key for key in new if new[key] != old.get(key)]
    if not changed and not gone:
        print("The reference outputs are up to date.")
        return
    for key in [*changed, *gone]:
        lines = difflib.unified_diff(
            _readable(old.get(key)),
            _readable(new.get(key)),
            f"old {key}",
            f"new {key}",
            "",
            "",
            2,
            "",
        )
        print("\n".join(lines), end="\n\n")
    if not accept and not _asked_and_agreed():
        raise BookError("Nothing was written. To accept: make outputs ACCEPT=1")
    for key in changed:
        write_atomic(REFERENCES / f"{key}.ipynb", nbformat.writes(new[key]) + "\n")
    for key in gone:
        stored_references()[key].unlink()
    print(f"Written: {len(changed)}; removed: {len(gone)}.")


def _readable(notebook: NotebookNode | None) -> list[str]:
    """A reference as lines for a diff: each cell's code, and what it must print."""
    lines = []
    for number, cell in enumerate(notebook.cells if notebook else [], 1):
        tags = ", ".join(cell.metadata.get("tags", []))
        lines += [f"cell {number} [{tags}]", *(f"    {x}" for x in cell.source.splitlines())]
        for output in cell.outputs:
            text = output.text if output.output_type == "stream" else output.data["text/plain"]
            lines += [f"  > {line}" for line in text.splitlines()]
    return lines


def _asked_and_agreed() -> bool:
    if not sys.stdin.isatty():
        return False
    return input("Accept these outputs as the reference? [y/N] ").strip().lower() == "y"
