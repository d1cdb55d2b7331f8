"""Where the code cells of a chapter stand: a line scanner, so that nothing but Python is needed.

It accepts fewer spellings than MyST does, and says so: `helpers.book` proves for every chapter
that jupytext sees the same cells, sources and tags.
"""

import re
from typing import NamedTuple

from helpers.paths import BookError

_FENCE = re.compile(r" {0,3}(?:(?P<ticks>`{3,})(?P<info>[^`]*)|(?P<tildes>~{3,})(?P<rest>.*))$")
_CELL = re.compile(r"(`{3,})\{code-cell\}[^`]*$")
_LIKE_A_CELL = re.compile(r"[\s>]*(`{3,}|~{3,}|:{3,})\s*\{code-cell\}")
_COLONS = re.compile(r" {0,3}(:{3,})(.*)$")
_SHOWN_AS_TEXT = ("{code-block}", "{code}", "{sourcecode}", "{parsed-literal}")


class FencedCell(NamedTuple):
    """One code cell. `opening` (the fence) and `line` (the code) are 1-based lines of the file."""

    opening: int
    line: int
    lines: list[str]
    options: str  # YAML text
    tags: tuple[str, ...]


def scan(text: str, name: str) -> list[FencedCell]:
    """Code cells of the chapter `text`, in order; `name` is how errors call the file."""
    lines = text.split("\n")
    cells, colons = [], []
    at = _after_front_matter(lines, name)
    while at < len(lines):
        line = lines[at]
        if _LIKE_A_CELL.match(line):
            end = _end_of_cell(lines, at, name)
            if colons:
                raise BookError(
                    f"{name}, line {at + 1}: a code cell inside a ::: directive does not run. "
                    "Close the directive first, or use a pair such as {solution-start} and "
                    "{solution-end}."
                )
            cells.append(_cell(lines, at, end, name))
            at = end
        elif fence := _FENCE.match(line):
            at = _end_of_fence(lines, at, fence, name)
        elif colon := _COLONS.match(line):
            _follow_colons(colons, *colon.groups())
        at += 1
    return cells


def _after_front_matter(lines: list[str], name: str) -> int:
    if lines[0].rstrip() != "---":
        return 0
    for at, line in enumerate(lines[1:], start=1):
        if line.rstrip() == "---":
            return at + 1
    raise BookError(f"{name}, line 1: the front matter is never closed. End it with a line `---`.")


def _follow_colons(open_directives: list[int], colons: str, rest: str) -> None:
    if rest.lstrip().startswith("{"):
        open_directives.append(len(colons))
    elif not rest.strip() and open_directives and len(colons) >= open_directives[-1]:
        open_directives.pop()


def _closing(lines: list[str], at: int, mark: str) -> int:
    """Index of the line that closes the fence `mark` opened at `at`, or the number of lines."""
    close = re.compile(rf" {{0,3}}{mark[0]}{{{len(mark)},}}[ \t]*$")
    return next((i for i in range(at + 1, len(lines)) if close.match(lines[i])), len(lines))


def _end_of_cell(lines: list[str], at: int, name: str) -> int:
    opening = _CELL.match(lines[at])
    if not opening:
        raise BookError(
            f"{name}, line {at + 1}: open a code cell with backticks at the beginning of a line, "
            "```{code-cell}. Written like this it would not run."
        )
    mark = opening[1]
    end = _closing(lines, at, mark)
    for i in range(at + 1, end):
        inner = _CELL.match(lines[i])
        if inner and len(inner[1]) >= len(mark):
            end = len(lines)
    if end == len(lines):
        raise BookError(
            f"{name}, line {at + 1}: this code cell is never closed before the next one opens. "
            f"End it with {mark}; where its code holds such a line, open and close it with more "
            "backticks."
        )
    return end


def _end_of_fence(lines: list[str], at: int, fence: re.Match, name: str) -> int:
    mark, info = fence["ticks"] or fence["tildes"], (fence["info"] or fence["rest"] or "").strip()
    end = _closing(lines, at, mark)
    if end == len(lines):
        raise BookError(f"{name}, line {at + 1}: this fence is never closed. End it with {mark}.")
    if info.startswith("{") and not info.startswith(_SHOWN_AS_TEXT):
        for i in range(at + 1, end):
            if _LIKE_A_CELL.match(lines[i]):
                raise BookError(
                    f"{name}, line {i + 1}: a code cell inside another directive does not run. "
                    "Close the directive first, or use a pair such as {solution-start} and "
                    "{solution-end}."
                )
    return end


def _cell(lines: list[str], at: int, end: int, name: str) -> FencedCell:
    start, options = at + 1, []
    if start < end and lines[start].startswith("---"):
        close = next((i for i in range(start + 1, end) if lines[i].startswith("---")), end)
        options, start = lines[start + 1 : close], min(close + 1, end)
    else:
        while start < end and lines[start].lstrip().startswith(":"):
            options.append(lines[start].lstrip()[1:])
            start += 1
    if start < end and not lines[start].strip():  # one blank line may part options and code
        start += 1
    text = "\n".join(options)
    tags = _tags(text, f"{name}, line {at + 1}")
    return FencedCell(at + 1, start + 1, lines[start:end], text, tags)


def _tags(text: str, where: str) -> tuple[str, ...]:
    if not re.search(r"^tags\s*:", text, re.MULTILINE):
        return ()
    if flow := re.search(r"^tags\s*:\s*\[(.*?)\]", text, re.MULTILINE | re.DOTALL):
        items = flow[1].split(",")
    elif block := re.search(r"^tags\s*:[ \t]*\n((?:[ \t]*-[ \t]+.*(?:\n|$))+)", text, re.MULTILINE):
        items = re.findall(r"-[ \t]+(.*)", block[1])
    else:
        raise BookError(f"{where}: tags are a list of words. Write `:tags: [export]`.")
    words = (item.strip().strip("'\"") for item in items)
    return tuple(word for word in words if word)
