"""What one statement of a cell is: its text, and whether ranks may repeat it."""

import ast
import builtins
from collections.abc import Iterator, Mapping

from helpers.definitions import Meaning, is_known

DEFS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
# fmt: off
PURE_BUILTINS = {
    abs, bool, bytes, dict, float, frozenset, int, len, list, max, min, range, round, set, slice,
    sorted, str, sum, tuple, zip,
}
# fmt: on
_PURE_NODES = (
    ast.Constant
    | ast.Tuple
    | ast.List
    | ast.Dict
    | ast.Set
    | ast.JoinedStr
    | ast.FormattedValue
    | ast.UnaryOp
    | ast.BinOp
    | ast.BoolOp
    | ast.Compare
    | ast.IfExp
    | ast.Subscript
    | ast.Slice
    | ast.Starred
    | ast.Attribute
    | ast.keyword
    | ast.ListComp
    | ast.SetComp
    | ast.DictComp
    | ast.GeneratorExp
    | ast.comprehension
    | ast.Lambda
    | ast.operator
    | ast.unaryop
    | ast.boolop
    | ast.cmpop
    | ast.expr_context
)  # fmt: skip


def first_line(node: ast.stmt) -> int:
    """Of the statement with its decorators, which `ast` leaves out of a node's lines."""
    return min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])


def text_of(source: str, tree: ast.Module, node: ast.stmt) -> tuple[str, int]:
    """Text of a top-level statement and its first line, with comments that stand right above."""
    start, end = first_line(node), node.end_lineno
    others = [n for n in tree.body if n is not node]
    if any(first_line(n) <= end and n.end_lineno >= start for n in others):  # `a = 1; b = 2`
        return ast.unparse(node), start
    lines = source.split("\n")
    taken = max([0, *(n.end_lineno for n in others if n.end_lineno < start)])
    while start - 1 > taken and lines[start - 2].startswith("#"):
        start -= 1
    return "\n".join(lines[start - 1 : end]), start


def is_pure(value: ast.expr, env: Mapping[str, Meaning]) -> bool:
    """`value` is the same wherever it is evaluated: made of literals and of what `env` defines.

    The only calls in it are those of PURE_BUILTINS and of methods of literals.
    """
    own = {n.id for n in ast.walk(value) if isinstance(n, ast.Name) and _is_stored(n)}

    def pure(node: ast.AST) -> bool:
        match node:
            case ast.Name(id=name):
                return name in own or is_known(name, env)
            case ast.Call(func=ast.Name(id=name)):
                return name not in env and getattr(builtins, name, None) in PURE_BUILTINS
            case ast.Call(func=ast.Attribute(value=ast.Constant())):
                return True
        return isinstance(node, _PURE_NODES)

    return all(pure(node) for node in _walk_outside_lambdas(value))


def is_plain_target(target: ast.expr) -> bool:
    """A name, an attribute or item of a name, or a tuple of names."""
    if isinstance(target, ast.Tuple | ast.List):
        inner = [t.value if isinstance(t, ast.Starred) else t for t in target.elts]
        return all(isinstance(t, ast.Name) or (_is_nested(t) and is_plain_target(t)) for t in inner)
    return root_name(target) is not None


def only_defines(node: ast.stmt, env: Mapping[str, Meaning]) -> bool:
    """Nothing happens in it but definitions, imports and pure constants, at any depth."""
    match node:
        case ast.If(test=test) if not any(isinstance(n, ast.NamedExpr) for n in ast.walk(test)):
            return all(only_defines(n, env) for n in [*node.body, *node.orelse])
        case ast.Try(handlers=handlers):
            bodies = [node.body, node.orelse, node.finalbody, *(h.body for h in handlers)]
            return all(only_defines(n, env) for body in bodies for n in body)
        case (
            ast.Assign(targets=[ast.Name()], value=value)
            | ast.AnnAssign(target=ast.Name(), value=ast.expr() as value)
        ):
            return is_pure(value, env)
        case ast.ImportFrom(names=[ast.alias(name="*")]):
            return False
        case ast.Expr(value=value):
            return isinstance(value, ast.Constant)
    return isinstance(node, ast.Import | ast.ImportFrom | ast.Pass | DEFS)


def root_name(node: ast.AST) -> str | None:
    """`A` of `A.f`, of `A["k"].f` and of `A`; None where something else stands first."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def changed_roots(node: ast.AST) -> set[str]:
    """Names whose attributes or items `node` sets or deletes."""
    parts = (n for n in ast.walk(node) if isinstance(n, ast.Attribute | ast.Subscript))
    return {root_name(n) for n in parts if _is_stored(n)} - {None}


def registers(call: ast.expr) -> bool:
    """By its name: `register_backend`, `f.register_autograd(g)`, `torch.library.define(...)`."""
    function = call.func if isinstance(call, ast.Call) else call
    name = getattr(function, "attr", getattr(function, "id", ""))
    return "register" in name or name in ("define", "impl")


def registered_as(call: ast.expr) -> set[str]:
    """The strings under which a call or decorator files its definition, and names of such."""
    if not isinstance(call, ast.Call):
        return set()
    keys = [*call.args[:1], *(k.value for k in call.keywords if k.arg == "name")]
    strings = {k.value for k in keys if isinstance(k, ast.Constant) and isinstance(k.value, str)}
    return strings | {k.id for k in keys if isinstance(k, ast.Name) and registers(call)}


def _is_stored(node: ast.expr) -> bool:
    return isinstance(node.ctx, ast.Store | ast.Del)


def _is_nested(node: ast.expr) -> bool:
    return isinstance(node, ast.Tuple | ast.List)


def _walk_outside_lambdas(node: ast.AST) -> Iterator[ast.AST]:
    """A lambda is a definition: what it does happens later, wherever it is called."""
    yield node
    if not isinstance(node, ast.Lambda):
        for child in ast.iter_child_nodes(node):
            yield from _walk_outside_lambdas(child)
