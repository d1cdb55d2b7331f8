"""Tells where in the book a frame of a rank is: chapter, cell and line, not a scratch file."""

import linecache
import re
from pathlib import Path

from helpers import paths
from helpers.lessons import scan

FRAME = re.compile(r'\s+File "(?P<file>.+)", line (?P<line>\d+)(?:,? in (?P<function>.+))?$')
MARKS = re.compile(r"\s+[~^][~^\s]*$")  # what Python 3.11 draws under a source line
LIBRARY_FRAMES = 2  # shown of each run of frames outside the book


class Places:
    """Rewrites the tracebacks of one run.

    In a recording a frame tells chapter, cell and line within the cell, which an edit of the
    prose leaves true; live, also the line of the `.md`. Frames of libraries: the last two.
    """

    def __init__(self, folder: Path, label: str, chapter: str, origins: dict):
        self._folder = folder
        self._script = folder / f"{label}.py"
        self._lessons = folder / "helpers" / "lessons"
        self._chapter, self._origins = chapter, origins
        self._live = not paths.recording()

    def rewrite(self, text: str) -> list[str]:
        """Lines of a traceback as Python prints it, or of stacks as faulthandler does."""
        shown, library, within_frame = [], [], False
        for line in text.splitlines():
            if frame := FRAME.match(line):
                within_frame = True
                if lines := self._book_frame(frame):
                    shown += [*_shortened(library), *lines]
                    library = []
                else:
                    library.append(self._library_frame(frame))
            elif not within_frame or not (line.startswith("    ") or MARKS.match(line)):
                shown += [*_shortened(library), line if self._live else scrub(line)]
                library, within_frame = [], False
            # else: the source, told by _book_frame; in a library it depends on the version
        return shown + _shortened(library)

    def _book_frame(self, frame: re.Match) -> list[str] | None:
        """Place and source of a frame in a cell or a lesson; None elsewhere."""
        file, line = Path(frame["file"]), int(frame["line"])
        if file == self._script:
            if line not in self._origins:
                return None
            cell, within = self._origins[line]
            where = _in_cell(self._chapter, cell, within)
            md_line = _md_line(self._chapter, cell, within)
            key = self._chapter
        elif file.parent == self._lessons:
            key, cell, within = _lesson_cell(file.stem, line)
            where, md_line = _in_cell(key, cell, within), line
        else:
            return None
        if self._live and md_line:
            where += f" (chapters/{key}.md:{md_line})"
        function = f", in {frame['function']}" if frame["function"] else ""
        return [f"  {where}{function}", f"    {linecache.getline(str(file), line).strip()}"]

    def _library_frame(self, frame: re.Match) -> str:
        file = frame["file"].removeprefix(f"{self._folder}/")
        file = re.sub(r".*/(site-packages|lib/python3\.\d+)/", "", file)
        file = "/".join(Path(file).parts[-3:]) if file.startswith("/") else file
        line = f", line {frame['line']}" if self._live else ""
        return f"  {file}{line}, in {frame['function']}"


def scrub(text: str) -> str:
    """`text` without what differs from run to run: ports, pids, addresses, folders."""
    text = re.sub(r"\[[^\]\s]*\.(?:cc|cpp|h|hpp|cu):\d+\]\s*", "", text)  # a line of C++
    text = re.sub(r"(\d+\.\d+\.\d+\.\d+\]?|localhost|\[::[\da-f.:]*\]):\d+", r"\1", text)
    text = re.sub(r"\b(pid|process|port)([\s:=]+)\d+", r"\1\2...", text, flags=re.IGNORECASE)
    text = re.sub(r"0x[\da-f]{6,}", "0x...", text)
    text = re.sub(r"(['\"])/[^'\"\n]*/", r"\1", text)
    return re.sub(r"(?<![\w.:/\])])/(?:[^\s/'\"]+/)+", "", text)


def _shortened(frames: list[str]) -> list[str]:
    hidden = len(frames) - LIBRARY_FRAMES
    if hidden < 1:
        return frames
    return [f"  ... {hidden} more in libraries ...", *frames[hidden:]]


def _in_cell(key: str, cell: int | None, line: int) -> str:
    return f"{key}, {'this cell' if cell is None else f'cell {cell}'}, line {line}"


def _code_cells(key: str) -> list:
    file = paths.CHAPTERS / f"{key}.md"
    return scan(file.read_text(encoding="utf-8"), file.name) if file.is_file() else []


def _md_line(key: str, cell: int | None, line: int) -> int | None:
    """Line of the `.md`, where `key` names a chapter that still has this cell."""
    cells = _code_cells(key)
    return cells[cell - 1].line + line - 1 if cell and cell <= len(cells) else None


def _lesson_cell(stem: str, line: int) -> tuple[str, int, int]:
    """Key of a lesson's chapter, number of the code cell that holds `line`, line within it."""
    key = next(paths.CHAPTERS.rglob(f"{stem}.md")).relative_to(paths.CHAPTERS)
    key = key.with_suffix("").as_posix()
    before = [cell for cell in _code_cells(key) if cell.line <= line]
    return key, len(before), line - before[-1].line + 1
