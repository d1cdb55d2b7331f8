"""The exercises of a chapter, and what of the chapter they need in order to run."""

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from helpers import book, lab_copy
from helpers.book import Cell, Chapter
from helpers.names import names_of
from helpers.statements import changed_roots, text_of

WRONG_ANSWERS = Path(__file__).parent / "wrong_answers"
LABEL = re.compile(r"""\bexercise\(\s*["']([\w-]+)["']""")


@dataclass(frozen=True)
class Exercise:
    """`answer` holds the solution cells, joined; `check` is the cell that judges them."""

    chapter: Chapter
    label: str
    answer: str
    check: Cell
    needs: str

    @property
    def id(self) -> str:
        return f"{self.chapter.path.stem}-{self.label}"

    @property
    def blank(self) -> str:
        return lab_copy.blank(self.answer, self.id)

    def answers(self) -> dict[str, str]:
        return {"blank": self.blank, **self.wrong_answers()}

    def wrong_answers(self) -> dict[str, str]:
        """Plausible and wrong, by file name: tests/wrong_answers/<chapter>/<label>*.py"""
        folder = WRONG_ANSWERS / self.chapter.path.stem
        return {
            path.name: path.read_text(encoding="utf-8")
            for path in sorted(folder.glob("*.py"))
            if re.fullmatch(rf"{self.label}(\.\w+)?", path.stem)
        }


def exercises_of(chapter: Chapter) -> list[Exercise]:
    """Each check with the solution cells above it. AssertionError for one without the other."""
    found: list[Exercise] = []
    solutions: list[Cell] = []
    for cell in chapter.cells:
        if "solution" in cell.tags:
            solutions.append(cell)
        if "exercise-check" in cell.tags:
            where = f"chapters/{chapter.key}.md, line {cell.line}"
            labels = set(LABEL.findall(cell.source))
            assert len(labels) == 1, f'{where}: an exercise-check has one `exercise("label")`'
            assert solutions, f"{where}: no cell tagged solution stands above this check"
            answer = "\n\n\n".join(solution.source for solution in solutions)
            needs = needed(
                [c for c in chapter.cells if c.number < solutions[0].number], answer, cell
            )
            found.append(Exercise(chapter, labels.pop(), answer, cell, needs))
            solutions = []
    assert not solutions, f"{chapter.key}: cell {solutions[0].number} is a solution without a check"
    return found


def needed(earlier: list[Cell], answer: str, check: Cell) -> str:
    """What must have run before an answer and its check: the statements that bind the names they
    read, and what these need. A name means its last binding before it is read."""
    statements = []
    for cell in earlier:
        if not cell.source.lstrip().startswith("%%"):
            source = plain(cell.source)
            tree = ast.parse(source)
            statements += [(node, text_of(source, tree, node)[0]) for node in tree.body]
    names = [names_of(text) for _, text in statements]
    taken: set[int] = set()

    def take(wanted: frozenset[str], before: int) -> None:
        for name in wanted:
            binds = [n for n in range(before) if name in names[n].binds]
            changes = [
                n for n in range(before) if binds and n > binds[-1]
                and name in changed_roots(statements[n][0])
            ]  # fmt: skip
            for number in {*binds[-1:], *changes} - taken:
                taken.add(number)
                take(names[number].early, number)
                take(names[number].late, len(statements))

    for text in (plain(answer), body_of(check.source)):
        take(names_of(text).early | names_of(text).late, len(statements))
    return "\n\n".join(statements[number][1] for number in sorted(taken))


def body_of(source: str) -> str:
    """A cell without its cell magic."""
    return plain(re.sub(r"\A\s*%%.*\n", "", source))


def plain(source: str) -> str:
    """A cell with its magics made comments, line for line."""
    return re.sub(r"(?m)^([ \t]*)[%!]", r"\1#", source)


def uses_outside_checks(chapter: Chapter) -> list[str]:
    """Where a cell reads what a reader is to write, outside `with exercise(...)`.

    There a blank would stop the notebook.
    """
    written: set[str] = set()
    found = []
    for cell in chapter.cells:
        if "solution" in cell.tags:
            written |= set(names_of(plain(cell.source)).binds)
            continue
        tree = ast.parse(body_of(cell.source))
        guarded = {
            name
            for node in ast.walk(tree)
            if isinstance(node, ast.With) and any(LABEL.search(ast.unparse(i)) for i in node.items)
            for name in ast.walk(node)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id in written and node not in guarded:
                line = cell.line + node.lineno - 1
                found.append(f"chapters/{chapter.key}.md, line {line}: {node.id}")
    return found


def all_exercises() -> list[Exercise]:
    return [each for key in book.chapters() for each in exercises_of(book.read(key))]
