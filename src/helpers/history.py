"""What the cells of a notebook defined, in the order in which they ran.

A definition is what a rank may repeat: an import, a function, a class, a constant made of
constants. Everything else is data, and belongs to the notebook's process.
"""

import ast

from helpers.cells import RecordedCell
from helpers.definitions import SETUP, Definition, Meaning, Unfit, data
from helpers.names import names_of
from helpers.statements import (
    DEFS,
    changed_roots,
    is_plain_target,
    is_pure,
    only_defines,
    registered_as,
    registers,
    root_name,
    text_of,
)


class History:
    """Follows the statements of `cells`. Afterwards:

    env: what each name means at the end.
    registered: (strings, definition) of what other code may look up by a string.
    setup: the cells tagged torchrun-setup, by source. stars: each `import *`, in words.
    future: the features of `from __future__` that a cell switched on for all later cells.
    """

    def __init__(self, cells: list[RecordedCell]):
        self.env: dict[str, Meaning] = {}
        self.registered: dict[str, tuple[set[str], Definition]] = {}
        self.setup: dict[str, Definition] = {}
        self.stars: list[str] = []
        self.future: set[str] = set()
        self._count = 0
        for self._cell in cells:
            self._add_cell()

    def _add_cell(self) -> None:
        cell, self._tree = self._cell, ast.parse(self._cell.source)
        for node in self._tree.body:
            if isinstance(node, ast.ImportFrom) and node.module == "__future__":
                self.future |= {alias.name for alias in node.names}
        for name in cell.data:
            self.env[name] = data(name, f"was pulled by cell {cell.number}")
        if SETUP in cell.tags:
            self.setup[cell.source] = self._bind(self._define(cell.source, 1, SETUP))
            return
        for node in self._tree.body:
            self._add_statement(node)

    def _add_statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Import() | ast.ImportFrom():
                self._add_import(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self._add_function_or_class(node)
            case ast.AnnAssign(value=None):
                pass
            case ast.Assign() | ast.AugAssign() | ast.AnnAssign():
                self._add_assignment(node)
            case ast.If() | ast.Try() if only_defines(node, self._env_within(node)):
                definition = self._define_statement(node, "definition")
                for name in definition.names.binds:
                    self._change(name, definition)
            case ast.Delete(targets=targets) if not changed_roots(node):
                for target in targets:
                    self.env.pop(root_name(target), None)
            case ast.Expr(value=ast.Call() as call) if registers(call):
                self._add_registration(node, call)
            case ast.Expr(value=ast.Call(func=ast.Name(id="setattr"), args=[target, *values])):
                self._add_change(node, root_name(target), values)
            case _:
                self._add_data(node, changed_roots(node))

    def _add_import(self, node: ast.Import | ast.ImportFrom) -> None:
        if getattr(node, "module", None) == "__future__":
            return
        for alias in node.names:
            line = ast.unparse(type(node)(**(vars(node) | {"names": [alias]})))
            if alias.name == "*":
                self.stars.append(f"`{line}` in cell {self._cell.number}")
                continue
            definition = self._define(line, node.lineno, "import")
            (name,) = definition.names.binds
            before = self.env.get(name)
            if definition.is_module and isinstance(before, tuple) and before[0].is_module:
                self._change(name, definition)
            else:
                self._bind(definition)

    def _add_function_or_class(self, node: ast.FunctionDef | ast.ClassDef) -> None:
        definition = self._define_statement(node, "definition")
        for decorator in node.decorator_list:  # `@op.register_fake` changes op
            call = decorator.func if isinstance(decorator, ast.Call) else decorator
            if isinstance(call, ast.Attribute) and self._is_ours(root_name(call)):
                self._change(root_name(call), definition)
        keys = set().union(*map(registered_as, node.decorator_list))
        if any(map(registers, node.decorator_list)):  # `@register_backend`, found by its name
            keys |= {node.name} - {"_"}
        if keys:
            head = "".join(map(ast.unparse, node.decorator_list)) + node.name
            self.registered[head] = keys, definition
        self.env[node.name] = (definition,)

    def _add_assignment(self, node: ast.Assign | ast.AugAssign | ast.AnnAssign) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        changed = changed_roots(node)
        if isinstance(node, ast.AugAssign) or changed:
            if len(targets) == 1 and is_plain_target(targets[0]):
                self._add_change(node, root_name(targets[0]), [node.value])
            else:
                self._add_data(node, changed)
        elif is_pure(node.value, self.env):
            self._bind(self._define_statement(node, "constant"))
        else:
            self._add_data(node, changed)

    def _add_change(self, node: ast.stmt, root: str | None, values: list[ast.expr]) -> None:
        """`A.f = g`, `TABLE["k"] = 1`, `n += 1`: travels with the definition that it changes.

        A change to an imported module (`torch._dynamo.config.x = 4`) is a side effect, unless it
        plants a function of the notebook there.
        """
        names = {n.id for v in values for n in ast.walk(v) if isinstance(n, ast.Name)}
        if not self._is_ours(root) and not any(map(self._is_ours, names)):
            return
        if root and all(is_pure(value, self.env) for value in values):
            self._change(root, self._define_statement(node, "definition"))
        else:
            self._add_data(node, {root})

    def _add_registration(self, node: ast.Expr, call: ast.Call) -> None:
        """Travels with each definition that it names, and with the string it files one under.

        What is registered with data (a hook on a model) stays with the notebook's data.
        """
        definition = self._define_statement(node, "definition")
        if any(isinstance(self.env.get(name), Unfit) for name in definition.names.early):
            return
        arguments = [*call.args, *(k.value for k in call.keywords)]
        ours = {n for n in map(root_name, [call.func, *arguments]) if self._is_ours(n)}
        for name in ours:
            self._change(name, definition)
        self.registered[ast.unparse(call)] = registered_as(call) | ours, definition

    def _add_data(self, node: ast.stmt, changed: set[str]) -> None:
        """What ranks do not repeat: names that it binds or changes are the notebook's own."""
        line = self._cell.source.split("\n")[node.lineno - 1].strip()
        where = f"cell {self._cell.number}, line {node.lineno}: `{line}`"
        inside = {n.name for n in ast.walk(node) if isinstance(n, DEFS)}
        for name in names_of(self._text(node)[0]).binds:
            self.env[name] = data(name, f"is made in {where}")
            if name in inside:
                cure = "Define it at the top level of a cell, or in this cell."
                self.env[name] = Unfit(f"is defined inside another statement ({where})", cure)
        for root in filter(self._is_ours, changed):
            why = f"is changed in a way that ranks do not repeat ({where})"
            cure = f"Make the change in this cell, or tag that cell `{SETUP}`."
            is_constant = self.env[root][0].kind == "constant"
            self.env[root] = data(root, why) if is_constant else Unfit(why, cure)

    # What names mean so far

    def _env_within(self, node: ast.stmt) -> dict[str, Meaning]:
        return self.env | dict.fromkeys(names_of(self._text(node)[0]).binds, ())

    def _is_ours(self, name: str | None) -> bool:
        """Defined in the notebook, not imported."""
        meaning = self.env.get(name)
        return isinstance(meaning, tuple) and meaning[0].kind != "import"

    def _change(self, name: str, definition: Definition) -> None:
        meaning = self.env.get(name, ())
        if isinstance(meaning, tuple):
            self.env[name] = (*meaning, definition)

    def _bind(self, definition: Definition) -> Definition:
        self.env |= dict.fromkeys(definition.names.binds, (definition,))
        return definition

    def _text(self, node: ast.stmt) -> tuple[str, int]:
        return text_of(self._cell.source, self._tree, node)

    def _define_statement(self, node: ast.stmt, kind: str) -> Definition:
        return self._define(*self._text(node), kind)

    def _define(self, text: str, line: int, kind: str) -> Definition:
        self._count += 1
        names = names_of(text, "annotations" in self.future)
        return Definition(self._count, self._cell, line, text, kind, names, dict(self.env))
