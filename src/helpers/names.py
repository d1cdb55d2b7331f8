"""Which names a piece of source reads and binds, told by `symtable` and `ast`."""

import ast
import symtable
from dataclasses import dataclass

_COMPREHENSIONS = {"listcomp", "setcomp", "dictcomp", "genexpr"}


@dataclass(frozen=True)
class Names:
    """Names of one piece of module-level source.

    early: read while it runs (decorators, defaults, bases, class bodies, plain statements).
    late: read only once a function of it is called. Neither holds what it binds itself.
    soft: in annotations that are strings, or globals that a function makes for itself: absence
        is no error.
    binds: bound at module level, or by a function that declares them global.
    strings: string constants, and "ns::op" for each attribute chain `torch.ops.ns.op`.
    """

    early: frozenset[str]
    late: frozenset[str]
    soft: frozenset[str]
    binds: frozenset[str]
    strings: frozenset[str]


def names_of(source: str, future_annotations: bool = False) -> Names:
    """Names of `source`, with annotations unevaluated if `future_annotations`."""
    prefix = "from __future__ import annotations\n" if future_annotations else ""
    early, late, soft, binds = set(), set(), set(), set()

    def walk(table, called: bool) -> None:
        if table.get_type() == "function" and table.get_name() not in _COMPREHENSIONS:
            called = True
        for symbol in table.get_symbols():
            name = symbol.get_name()
            if table.get_type() == "module":
                if symbol.is_referenced():
                    early.add(name)
                if symbol.is_assigned() or symbol.is_imported():
                    binds.add(name)
            elif symbol.is_global():
                if symbol.is_assigned():  # `global name` in a function that sets it
                    binds.add(name)
                    soft.add(name)
                elif symbol.is_referenced():
                    (late if called else early).add(name)
            elif table.get_type() == "class" and symbol.is_assigned() and symbol.is_referenced():
                soft.add(name)  # `class A: x = x` reads the global x first
        for child in table.get_children():
            walk(child, called)

    walk(symtable.symtable(prefix + source, "<cell>", "exec"), False)
    binds.discard("annotations" if prefix else None)
    tree = ast.parse(source)
    soft |= _annotated(tree, future_annotations)
    # What it binds itself it does not need, unless it reads that first, as `class A(A)` does.
    early = (early - binds) | (_read_before_bound(tree) & binds)
    return Names(*map(frozenset, (early, late - binds, soft, binds, strings_of(tree))))


def _annotated(tree: ast.AST, future: bool) -> set[str]:
    """Names in annotations that Python does not evaluate when it runs the statement."""
    found = set()
    for node in ast.walk(tree):
        for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            for part in ast.walk(annotation) if annotation else ():
                if future and isinstance(part, ast.Name):
                    found.add(part.id)
                elif isinstance(part, ast.Constant) and isinstance(part.value, str):
                    try:
                        expression = ast.parse(part.value, mode="eval")
                    except SyntaxError:
                        continue
                    found |= {n.id for n in ast.walk(expression) if isinstance(n, ast.Name)}
    return found


def strings_of(tree: ast.AST) -> set[str]:
    """The string constants of `tree`; `torch.ops.ns.op` counts as "ns::op"."""
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)):
                found.add(text)
            case ast.Attribute(
                attr=op, value=ast.Attribute(attr=ns, value=ast.Attribute(attr="ops"))
            ):
                found.add(f"{ns}::{op}")
    return found


def _read_before_bound(tree: ast.Module) -> set[str]:
    """Names that the module-level code of `tree` reads before it binds them.

    A binding in any branch counts: the question is whether the notebook's value is meant.
    """
    walker = _EvaluationOrder()
    walker.visit(tree)
    return walker.reads


class _EvaluationOrder(ast.NodeVisitor):
    """Visits module-level code in the order in which Python evaluates it."""

    def __init__(self):
        self.bound, self.reads = set(), set()

    def bind(self, name: str | None) -> None:
        if name:
            self.bound.add(name)

    def visit_parts(self, *parts) -> None:
        for part in parts:
            for node in part if isinstance(part, list) else [part]:
                if node is not None:
                    self.visit(node)

    def visit_Name(self, node):
        if isinstance(node.ctx, ast.Store):
            self.bind(node.id)
        elif node.id not in self.bound:
            self.reads.add(node.id)

    def visit_Assign(self, node):
        self.visit_parts(node.value, node.targets)

    def visit_AnnAssign(self, node):
        self.visit_parts(node.annotation, node.value)
        if node.value or not isinstance(node.target, ast.Name):
            self.visit(node.target)

    def visit_AugAssign(self, node):
        if isinstance(node.target, ast.Name) and node.target.id not in self.bound:
            self.reads.add(node.target.id)
        self.visit_parts(node.value, node.target)

    def visit_NamedExpr(self, node):
        self.visit_parts(node.value, node.target)

    def visit_For(self, node):
        self.visit_parts(node.iter, node.target, node.body, node.orelse)

    visit_AsyncFor = visit_For

    def visit_Import(self, node):
        for alias in node.names:
            self.bind((alias.asname or alias.name).split(".")[0])

    visit_ImportFrom = visit_Import

    def visit_ExceptHandler(self, node):
        self.visit_parts(node.type)
        self.bind(node.name)
        self.visit_parts(node.body)

    def visit_MatchAs(self, node):
        self.visit_parts(node.pattern)
        self.bind(node.name)

    def visit_MatchStar(self, node):
        self.bind(node.name)

    def visit_MatchMapping(self, node):
        self.visit_parts(node.keys, node.patterns)
        self.bind(node.rest)

    def visit_FunctionDef(self, node):
        self.visit_parts(node.decorator_list, node.args.defaults, node.args.kw_defaults)
        self.bind(node.name)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node):
        self.visit_parts(node.decorator_list, node.bases, [k.value for k in node.keywords])
        self.bind(node.name)

    def visit_Lambda(self, node):
        self.visit_parts(node.args.defaults, node.args.kw_defaults)

    def _visit_comprehension(self, node):
        """Names in it belong to a scope of its own; those it makes are not ours."""
        own = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        inner = _EvaluationOrder()
        inner.bound = self.bound | own
        inner.visit_parts(
            node.generators, *(getattr(node, f, None) for f in ("key", "value", "elt"))
        )
        self.reads |= inner.reads
        self.bound |= inner.bound - own

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _visit_comprehension

    def visit_comprehension(self, node):
        self.visit_parts(node.iter, node.target, node.ifs)
