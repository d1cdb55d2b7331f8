"""Cuts a distributed cell and the definitions it needs out of the notebook, as a script."""

import ast
import io
import re
import tokenize
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from helpers.cells import RecordedCell
from helpers.closure import Closure
from helpers.definitions import SETUP, Definition, is_builtin
from helpers.history import History
from helpers.names import names_of
from helpers.paths import BookError

INDENT = "    "
BLOCK = re.compile(r"^(@|(async|class|def|if|try)\b)", re.MULTILINE)


@dataclass(frozen=True)
class Script:
    """A program that runs on ranks without the notebook.

    origins: for each line of `text` that comes from a cell, the cell's number and the line in it.
    """

    text: str
    origins: dict[int, tuple[int | None, int]]


def slice_cell(
    body: str,
    cells: list[RecordedCell],
    push: Sequence[str] = (),
    pull: Sequence[str] = (),
    *,
    namespace: Mapping | None = None,
    number: int | None = None,
    first_line: int = 2,
) -> Script:
    """The script of a distributed cell.

    `cells` are those that ran before. `namespace` holds the notebook's values. `body` is part of
    cell `number` and begins at its line `first_line`. Raises BookError, which names the name, the
    cell and the cure, for what ranks cannot have.
    """
    tree = _parsed(body, first_line)
    history = History(cells)
    history.stars += [f"`{ast.unparse(node)}` in this cell" for node in _star_imports(tree)]
    features = {alias.name for node in _futures(tree) for alias in node.names} | history.future
    names = names_of(body, "annotations" in features)
    if never := sorted(set(pull) - names.binds - set(push)):
        raise BookError(f"`--pull {never[0]}`: this cell never sets `{never[0]}`.")
    closure = Closure(history, push, namespace or {})
    closure.need(names, "this cell")

    page = _Page()
    page.add_definitions(closure.carried, features)
    page.add_main(_without_futures(body, tree), push, pull, number, first_line)
    return page.script()


def indented(body: str) -> str:
    """`body` one level deeper; lines that begin within a string stay as they are."""
    kept: set[int] = set()
    starts: list[int] = []
    for token in tokenize.generate_tokens(io.StringIO(body).readline):
        kind = tokenize.tok_name[token.type]
        if kind == "FSTRING_START":  # from Python 3.12 on an f-string is several tokens
            starts.append(token.start[0])
        elif kind in ("STRING", "FSTRING_END"):
            start = starts.pop() if kind == "FSTRING_END" else token.start[0]
            kept.update(range(start + 1, token.end[0] + 1))
    lines = enumerate(body.split("\n"), start=1)
    return "\n".join(t if n in kept or not t.strip() else INDENT + t for n, t in lines)


@dataclass
class _Page:
    """The script as it grows."""

    lines: list[str] = field(default_factory=list)
    origins: dict[int, tuple[int | None, int]] = field(default_factory=dict)

    def add(self, text: str, cell: int | None = None, line: int | None = None) -> None:
        for offset, content in enumerate(text.split("\n")):
            self.lines.append(content)
            if line is not None and content.strip():
                self.origins[len(self.lines)] = cell, line + offset

    def gap(self, blank_lines: int) -> None:
        while self.lines and not self.lines[-1]:
            self.lines.pop()
        self.lines += [""] * blank_lines if self.lines else []

    def add_definitions(self, carried: Collection[Definition], features: set[str]) -> None:
        """Everything above the main guard, in the order in which the notebook ran it."""
        if features:
            self.add(f"from __future__ import {', '.join(sorted(features))}")
        ordered = sorted(carried, key=lambda d: d.order)
        # A setup cell that needs nothing from others may set what an import reads.
        first = [d for d in ordered if d.kind == SETUP and _stands_alone(d)]
        imports = [d for d in ordered if d.kind == "import" and _may_move(d, ordered)]
        for definition in first:
            self._add_cell(definition)
        self.gap(1)
        for definition in imports:
            if definition.text not in self.lines:
                self.add(definition.text, definition.cell.number, definition.line)
        previous = None
        for definition in ordered:
            if definition not in first and definition not in imports:
                self._add_cell(definition, previous)
                previous = definition

    def _add_cell(self, definition: Definition, previous: Definition | None = None) -> None:
        if not previous or previous.cell is not definition.cell:
            self.gap(2)
            self.add(f"# from cell {definition.cell.number}")
        elif BLOCK.search(previous.text) or BLOCK.search(definition.text):
            self.gap(2)
        self.add(definition.text, definition.cell.number, definition.line)

    def add_main(
        self, body: str, push: Sequence[str], pull: Sequence[str], number: int | None, line: int
    ) -> None:
        self.gap(2)
        self.add('if __name__ == "__main__":')
        self.add(f"{INDENT}import helpers.ranks\n")
        asked = ", ".join(f'"{name}"' for name in push)
        names = f"({push[0]},)" if len(push) == 1 else ", ".join(push)
        self.add(f"{INDENT}{names + ' = ' if push else ''}helpers.ranks.begin({asked})\n")
        self.add(indented(body), number, line)
        self.gap(1)
        given = "".join(f', "{name}"' for name in pull)
        self.add(f"{INDENT}helpers.ranks.end(globals(){given})")

    def script(self) -> Script:
        text = "\n".join(self.lines) + "\n"
        try:
            compile(text, "<script>", "exec", dont_inherit=True)
        except SyntaxError as error:  # `return`, `await` or `yield` outside a function
            cell, line = self.origins.get(error.lineno, (None, error.lineno))
            raise BookError(f"Ranks cannot run line {line} of cell {cell}: {error.msg}.") from None
        return Script(text, self.origins)


def _parsed(body: str, first_line: int) -> ast.Module:
    try:
        return ast.parse(body)
    except SyntaxError as error:
        wrong = body.split("\n")[(error.lineno or 1) - 1].strip()
        hint = " Ranks run plain Python: no magics." if wrong.startswith(("%", "!")) else ""
        where = f"Line {first_line + (error.lineno or 1) - 1} of this cell"
        raise BookError(f"{where} is not Python ({error.msg}): `{wrong}`.{hint}") from None


def _star_imports(tree: ast.Module) -> list[ast.ImportFrom]:
    found = (n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom))
    return [node for node in found if node.names[0].name == "*"]


def _futures(tree: ast.Module) -> list[ast.ImportFrom]:
    found = (n for n in tree.body if isinstance(n, ast.ImportFrom))
    return [node for node in found if node.module == "__future__"]


def _without_futures(body: str, tree: ast.Module) -> str:
    lines = body.split("\n")
    for node in _futures(tree):
        lines[node.lineno - 1 : node.end_lineno] = [""] * (node.end_lineno - node.lineno + 1)
    return "\n".join(lines)


def _stands_alone(definition: Definition) -> bool:
    return all(map(is_builtin, definition.names.early | definition.names.late))


def _may_move(definition: Definition, carried: list[Definition]) -> bool:
    """An import goes to the top, unless another definition of its name comes before it."""
    earlier = (d for d in carried if d.order < definition.order and not d.is_module)
    others = (d for d in earlier if d.text != definition.text)
    return not any(definition.names.binds & other.names.binds for other in others)
