"""A chapter as a notebook to work in: guesses empty, exercises blank, solutions folded."""

import ast
import re
from collections.abc import Callable, Iterator

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from helpers.book import Chapter
from helpers.paths import BookError

BLANK = 'raise NotImplementedError("your turn")'
EMPTY = "...  # your turn"
SOLUTION = re.compile(
    r"^([ \t]*)### BEGIN SOLUTION[ \t]*\n(.*?)^[ \t]*### END SOLUTION[ \t]*$",
    re.DOTALL | re.MULTILINE,
)
MARKER = re.compile(r"^[ \t]*### (?:BEGIN|END) SOLUTION[ \t]*\n?", re.MULTILINE)
GATE = re.compile(
    r"^(`{3,}|:{3,})\{solution-(start|end)\}[^\n]*\n.*?^\1[ \t]*\n?", re.DOTALL | re.MULTILINE
)
FOLDED = {  # what a tag hides on the site, JupyterLab folds
    "source_hidden": {"hide-input", "hide-cell", "remove-input", "remove-cell"},
    "outputs_hidden": {"hide-output", "hide-cell", "remove-output", "remove-cell"},
}
FIRST_CELL = """\
# This copy is yours: `make lab` never overwrites it. Are the book's helpers here?
from importlib.util import find_spec

if find_spec("helpers") is None:
    raise ModuleNotFoundError(
        "This notebook needs the book's own package, `helpers`, and this Python has none. "
        "In a terminal, go to the folder of the book (the one with the Makefile) and type "
        "`make lab`. Or give it to this Python: `pip install -r requirements.txt -e .` there."
    )"""


def lab_notebook(chapter: Chapter, prose: Callable[[str], str]) -> NotebookNode:
    """The copy of `chapter`; `prose` rewrites its Markdown. Raises BookError for a blank that
    would stop Run All."""
    cells = _Cells(chapter.key, prose).of(chapter.notebook.cells)
    if chapter.cells:
        folded = {"jupyter": {"source_hidden": True}}  # its first line stays to be seen
        cells.insert(0, new_code_cell(FIRST_CELL, metadata=folded))
    metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return new_notebook(cells=cells, metadata=metadata)


class _Cells:
    """Follows a chapter's cells. `_folded` collects a solution until its exercise was checked."""

    def __init__(self, key: str, prose: Callable[[str], str]):
        self._key, self._prose = key, prose
        self._cells: list[NotebookNode] = []
        self._folded: list[str] = []
        self._in_solution = False
        self._number = 0

    def of(self, cells: list[NotebookNode]) -> list[NotebookNode]:
        for cell in cells:
            if cell.cell_type == "markdown":
                self._add_markdown(cell.source)
            else:
                self._number += 1
                self._add_code(cell, set(cell.metadata.get("tags", ())))
        self._show_folded()
        return self._cells

    def _add_markdown(self, source: str) -> None:
        position = 0
        for gate in GATE.finditer(source):
            self._add_prose(source[position : gate.start()])
            position, self._in_solution = gate.end(), gate[2] == "start"
            if self._in_solution:
                self._show_folded()
        self._add_prose(source[position:])

    def _add_prose(self, text: str) -> None:
        if text := text.strip("\n"):
            if self._in_solution:
                self._folded.append(self._prose(text))
            else:
                self._cells.append(new_markdown_cell(self._prose(text)))

    def _add_code(self, cell: NotebookNode, tags: set[str]) -> None:
        if "skip-lab" in tags:
            return
        source = cell.source
        if "solution" in tags:
            solved = MARKER.sub("", source).rstrip()
            self._folded.append(f"```python\n{solved}\n```")
            source = blank(source, f"{self._key}, cell {self._number}")
        folded = {name: True for name, causes in FOLDED.items() if tags & causes}
        metadata = {"tags": sorted(tags)} if tags else {}
        self._cells.append(
            new_code_cell(
                empty_guesses(source),
                metadata=metadata | ({"jupyter": folded} if folded else {}),
            )
        )
        if "exercise-check" in tags:
            self._show_folded()

    def _show_folded(self) -> None:
        if self._folded:
            text = "\n\n".join(self._folded)
            fence = "`" * (1 + max([2, *map(len, re.findall(r"`{3,}", text))]))
            self._cells.append(new_markdown_cell(f"{fence}{{dropdown}} Solution\n{text}\n{fence}"))
            self._folded = []


def blank(source: str, where: str) -> str:
    """A cell tagged `solution` with what stands between its marks left to the reader.

    In a function the blank raises when it is called; in a class it is empty, so that the check
    fails. Raises BookError for a blank that would stop Run All, and for marks that do not match.
    """
    if source.lstrip().startswith("%%"):
        raise BookError(f"{where} is tagged solution and begins with a magic. Take the magic away.")
    blanked, count = SOLUTION.subn(rf"\1{BLANK}", source)
    if not count or MARKER.search(blanked):
        raise BookError(
            f"{where} is tagged solution: enclose the part to leave blank in a line "
            "`### BEGIN SOLUTION` and a line `### END SOLUTION`."
        )
    try:
        tree = ast.parse(_without_magics(blanked))
    except SyntaxError as error:
        raise BookError(f"{where} is not Python without its solution: {error.msg}.") from None
    lines = blanked.split("\n")
    for node, owner in _blanks(tree, tree):
        if isinstance(owner, ast.Module):
            raise BookError(
                f"{where}: a blank outside a function would stop the notebook when all cells run. "
                "Make what is asked for a function."
            )
        if isinstance(owner, ast.ClassDef):
            lines[node.lineno - 1] = f"{' ' * node.col_offset}{EMPTY}"
    return "\n".join(lines)


def _blanks(node: ast.AST, owner: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Each blank below `node`, with the module, class or function that it is a statement of."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Raise) and ast.unparse(child) == ast.unparse(ast.parse(BLANK)):
            yield child, owner
        owns = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        yield from _blanks(child, child if owns else owner)


def empty_guesses(source: str) -> str:
    """`predict("name", 3)` becomes `predict("name", ...)`."""
    if "predict(" not in source or source.lstrip().startswith("%%"):
        return source
    text = source.encode()
    starts = [0]
    for line in text.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    guesses = [
        guess
        for node in ast.walk(ast.parse(_without_magics(source)))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "predict"
        for guess in [*node.args[1:], *(word.value for word in node.keywords)]
    ]
    for node in sorted(guesses, key=lambda node: (node.lineno, node.col_offset), reverse=True):
        first = starts[node.lineno - 1] + node.col_offset
        last = starts[node.end_lineno - 1] + node.end_col_offset
        text = text[:first] + b"..." + text[last:]
    return text.decode()


def _without_magics(source: str) -> str:
    """Python of the same length and lines."""
    return re.sub(r"(?m)^([ \t]*)[%!]", r"\1#", source)
