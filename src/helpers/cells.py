"""Remembers the cells that ran, so that a distributed cell can take definitions from them."""

import re
from dataclasses import dataclass
from functools import cached_property

from helpers.paths import chapter_key

_PYTHON_MAGICS = ("%%time", "%%capture")  # cell magics whose body runs in the notebook itself


@dataclass(frozen=True)
class RecordedCell:
    """A cell that ran without error.

    number: of the chapter's code cell with this source, else the execution count.
    source: plain Python with the line numbers of the cell; magics became calls.
    tags: from the notebook's metadata, else from the chapter.
    line_in_md: line of the chapter's .md that holds the first line of the source.
    data: names that a distributed cell pulled; such a cell has no source.
    body_line: line of the cell that follows the line of a cell magic.
    """

    number: int
    source: str
    tags: tuple[str, ...] = ()
    line_in_md: int | None = None
    data: tuple[str, ...] = ()
    body_line: int = 2


class CellRecorder:
    """Listens to IPython's events, since `In` stays empty where history is off (nbval).

    cells: what ran without error, in order. current: the cell that is running.
    """

    def __init__(self, shell):
        self.shell = shell
        self.cells: list[RecordedCell] = []
        self.current = RecordedCell(1, "")
        self._last_found = 0
        shell.events.register("pre_run_cell", self._before)
        shell.events.register("post_run_cell", self._after)

    def _before(self, info) -> None:
        # IPython counts the cell before this event or after it, by its version; its history after.
        history = self.shell.history_manager.input_hist_raw
        number = len(history) if info.store_history else self.shell.execution_count
        self.current = self._recorded(info, number)

    def _after(self, result) -> None:
        info = result.info
        if not result.success or info.raw_cell is None:
            return
        magic = re.match(r"\s*(%%\w+)", info.raw_cell)
        if not magic or magic[1] in _PYTHON_MAGICS:
            number = result.execution_count or self.shell.execution_count
            self.cells.append(self._recorded(info, number))

    def pulled(self, names: tuple[str, ...]) -> None:
        """From here on `names` are data, whatever defined them before."""
        self.cells.append(RecordedCell(self.current.number, "", data=names))

    def _recorded(self, info, number: int) -> RecordedCell:
        raw, line = info.raw_cell or "", None
        tags = (getattr(info, "cell_meta", None) or {}).get("tags")
        if cell := self._in_chapter(raw):
            number, line = cell.number, cell.line
            tags = cell.tags if tags is None else tags
        body_line = raw[: len(raw) - len(raw.lstrip())].count("\n") + 2
        return RecordedCell(number, self._as_python(raw), tuple(tags or ()), line, (), body_line)

    @cached_property
    def _chapter_cells(self) -> list:
        from helpers import book

        key = chapter_key()
        return [] if key == "notebook" else book.read(key).cells

    def _in_chapter(self, raw: str):
        """The chapter's cell with this source; of several the next one, in reading order."""
        same = [c for c in self._chapter_cells if c.source.strip() == raw.strip()]
        if not same:
            return None
        cell = next((c for c in same if c.number >= self._last_found), same[0])
        self._last_found = cell.number
        return cell

    def _as_python(self, raw: str) -> str:
        """The cell after IPython's own transformations, line for line."""
        if re.match(r"\s*%%", raw):
            raw = re.sub(r"^(\s*)%%.*", r"\1", raw)
        above = re.match(r"([ \t]*\n)*", raw)[0].count("\n")
        source = self.shell.transform_cell(raw).rstrip("\n")
        if above + source.count("\n") != raw.rstrip("\n").count("\n"):
            raw = re.sub(r"(?m)^[ \t]*[!%](.*\\\n)+.*$", _on_one_line, raw)
            source = self.shell.transform_cell(raw).rstrip("\n")
        return "\n" * above + source


def _on_one_line(match: re.Match) -> str:
    """A magic that backslashes spread over lines, and blank lines in place of the others."""
    return match[0].replace("\\\n", " ") + "\n" * match[0].count("\\\n")
