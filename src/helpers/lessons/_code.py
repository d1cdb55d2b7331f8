"""What the Python of a cell may hold, and which lessons it imports."""

import ast
import re

from helpers.paths import BookError

_DEFINITION = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_CONSTANT = (
    *(ast.Constant, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.BinOp, ast.UnaryOp),
    *(ast.Name, ast.Attribute, ast.operator, ast.unaryop, ast.expr_context),
)
_LESSON_NAME = re.compile(r"\bhelpers\.lessons\.([A-Za-z]\w*)")


def check_export(source: str, file: str = "export cell", first_line: int = 1) -> None:
    """Raise BookError unless `source` holds only imports, definitions and literal constants.

    Constants may be computed from literals and names (`WIDTH = 4 * HEAD`), never by a call.
    Registrations are decorators (`@register_backend("mine")` of helpers.compat,
    `@op.register_fake`) or the statement `op.register_autograd(...)`, which torch repeats safely.
    A SyntaxError keeps its type; it and the errors name `file` and lines counted from `first_line`.
    """
    tree = parse_export("\n" * (first_line - 1) + source, file)
    for node in tree.body:
        if reason := _refuse(node):
            raise BookError(f"{file}, line {node.lineno}: {reason}")
    for node in ast.walk(tree):
        if _registers_once(node):
            raise BookError(
                f"{file}, line {node.lineno}: this registration raises the second time it runs. "
                "For a backend use `from helpers.compat import register_backend`; for an operator "
                "`torch.library.custom_op`."
            )


def parse_export(source: str, file: str) -> ast.Module:
    """The tree of exported code; a notebook magic in it is a BookError, as `file` tells."""
    try:
        return ast.parse(source, filename=file)
    except SyntaxError as error:
        lineno = error.lineno or 1
        line = source.split("\n")[lineno - 1].strip()
        if line.startswith(("%", "!", "?")) or line.endswith("?"):
            raise BookError(
                f"{file}, line {lineno}: an export cell is plain Python, and `{line}` is for "
                "notebooks only. Move it to a cell without the tag `export`."
            ) from None
        raise


def _refuse(node: ast.stmt) -> str:
    """Why a statement may not stand in an export cell; empty where it may."""
    if isinstance(node, ast.ImportFrom):
        if node.level or any(name.name == "*" for name in node.names):
            return "import by full name, and each name that you use."
        return ""
    if isinstance(node, ast.ClassDef):
        return next((why for why in map(_refuse_in_class, node.body) if why), "")
    if isinstance(node, (ast.Import, *_DEFINITION)) or _is_docstring(node):
        return ""
    if isinstance(node, ast.Assign | ast.AnnAssign):
        parts = [*getattr(node, "targets", []), *([node.value] if node.value else [])]
        if all(isinstance(each, _CONSTANT) for part in parts for each in ast.walk(part)):
            return ""
    if isinstance(node, ast.Expr) and _called(node.value) == "register_autograd":
        return ""
    return _runs_code(node)


def _refuse_in_class(node: ast.stmt) -> str:
    if isinstance(node, ast.ClassDef):
        return _refuse(node)
    allowed = (*_DEFINITION, ast.Assign, ast.AnnAssign, ast.Pass)
    return "" if isinstance(node, allowed) or _is_docstring(node) else _runs_code(node)


def _runs_code(node: ast.stmt) -> str:
    return (
        f"`{ast.unparse(node).splitlines()[0]}` runs code. An export cell holds only imports, "
        "definitions and literal constants: move the line to a cell without the tag `export`, "
        "or into a function."
    )


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _called(node: ast.expr) -> str:
    """Last name of what a call calls: "register_autograd" for `op.register_autograd(...)`."""
    return node.func.attr if isinstance(node, ast.Call) and hasattr(node.func, "attr") else ""


def _registers_once(node: ast.AST) -> bool:
    """torch's own register_backend and library.define raise on a second registration."""
    if isinstance(node, ast.ImportFrom):
        torch_module = (node.module or "").split(".")[0] == "torch"
        return torch_module and any(name.name == "register_backend" for name in node.names)
    if not isinstance(node, ast.Attribute):
        return False
    owner = ast.unparse(node.value).split(".")[-1]
    return (node.attr == "register_backend" and owner != "compat") or (
        node.attr == "define" and owner == "library"
    )


def imported_lessons(source: str) -> set[str]:
    """Stems of the chapters that a cell or script imports, at any depth, also under a cell magic.

    What is not Python (the text after a line magic, a `%%bash` cell) is searched for the full name.
    """
    tree, not_python = _parse_cell(source)
    found = set(_LESSON_NAME.findall(not_python))
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [f"{node.module}.{name.name}" for name in node.names]
        found.update(stem for name in names for stem in _LESSON_NAME.findall(name))
    return found


def _parse_cell(source: str) -> tuple[ast.Module, str]:
    """The tree of a cell without its magics, and the text that is not in the tree."""
    try:
        return ast.parse(source), ""
    except SyntaxError:
        magic = re.compile(r"^(\s*)(?:\w+\s*=\s*)?[%!].*$", re.MULTILINE)
        not_python = "\n".join(match[0] for match in magic.finditer(source))
        try:
            return ast.parse(magic.sub(r"\1pass", source)), not_python
        except SyntaxError:
            return ast.Module([], []), source
