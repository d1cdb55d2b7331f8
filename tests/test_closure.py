"""A distributed cell takes along the definitions that it needs, as they were, and no others."""

import pytest
from slices import sliced, value

CARRIED = {
    "a function and what it calls": (
        "r = outer(1)",
        ["def unused(): return missing", "def inner(x): return x + 1", "def outer(x): return inner(x)"],
        2,
    ),
    "a name defined after its user": ("r = f()", ["def f(): return g()", "def g(): return 5"], 5),
    "functions that call each other": (
        "r = even(4)",
        ["def even(n): return n == 0 or odd(n - 1)\ndef odd(n): return n > 0 and even(n - 1)"],
        True,
    ),
    "an async function": (
        "import asyncio\nr = asyncio.run(f())",
        ["async def g(): return 3\nasync def f(): return await g()"],
        3,
    ),
    "a class, its base and its metaclass": (
        "r = B().x, type(B).__name__",
        ["class Meta(type): pass", "class A: x = 4", "class B(A, metaclass=Meta): pass"],
        (4, "Meta"),
    ),
    "names of a class body and its methods": (
        "r = A().f()",
        ["K = 2\nL = 5", "class A:\n    k = [K for _ in range(2)]\n    def f(self): return self.k, L"],
        ([2, 2], 5),
    ),
    "decorators above the def": (
        "r = f()",
        ["def twice(g): return lambda: 2 * g()", "@twice\n@twice\ndef f(): return 3"],
        12,
    ),
    "a decorator with arguments that are constants": (
        "r = f()",
        ["N = 4\ndef times(n): return lambda g: lambda: n * g()", "@times(n=N)\ndef f(): return 1"],
        4,
    ),
    "defaults, positional and keyword": (
        "r = f()",
        ["A = 1\nB = 2", "def f(a=A, *, b=B): return a, b"],
        (1, 2),
    ),
    "annotations": (
        "r = f.__annotations__['x'].__name__",
        ["class T: pass", "def f(x: T): pass"],
        "T",
    ),
    "annotations that are strings": (
        "import typing\nr = typing.get_type_hints(f)['x'].__name__",
        ["class T: pass", "def f(x: 'T'): pass"],
        "T",
    ),
    "dataclass fields": (
        "r = Point(1).y",
        ["from dataclasses import dataclass, field\nZERO = 0",
         "@dataclass\nclass Point:\n    x: int\n    y: list = field(default_factory=lambda: [ZERO])"],
        [0],
    ),
    "nested functions and closures": (
        "r = f()()",
        ["K = 3\ndef f():\n    a = 1\n    def g():\n        return a + K\n    return g"],
        4,
    ),
    "comprehensions hide their own names": (
        "r = [x for x in XS if x > LOW]",
        ["x = object()\nLOW = 1\nXS = [i for i in range(4)]"],
        [2, 3],
    ),
    "match statements": (
        "match make():\n    case Q(a=LOW.x as n) if n: r = n",
        ["class Q: a = 6", "class LOW: x = 6", "def make(): return Q()"],
        6,
    ),
    "a walrus": ("if (n := K) > 1: r = n", ["n = object()\nK = 2"], 2),
    "a global statement": (
        "bump()\nbump()\nr = COUNT",
        ["COUNT = 0\ndef bump():\n    global COUNT\n    COUNT += 1"],
        2,
    ),
    "a global that only a function sets": (
        "r = bump()",
        ["COUNT = 4\ndef bump():\n    global COUNT\n    COUNT += 1\n    return COUNT"],
        5,
    ),
    "a class attribute of the name of a global": ("r = A.x", ["x = 3\nclass A:\n    x = x"], 3),
    "f-strings": ("r = f'{NAME!r:>{WIDTH}}'", ["NAME = 'a'\nWIDTH = 5"], "  'a'"),
    "lambdas": ("r = f(2)", ["K = 3\nf = lambda x, k=K: g(x) * k", "def g(x): return x + 1"], 9),
    "one alias of an import statement": (
        "r = p.basename('a/b')",
        ["from os import path as p, does_not_exist_but_unused_here as q"],
        "b",
    ),
    "a conditional definition": (
        "r = f()",
        ["import sys", "if sys.version_info > (3,):\n    def f(): return 'new'\nelse:\n    def f(): return 'old'"],
        "new",
    ),
    "an import that may fail": (
        "r = fast",
        ["try:\n    import no_such_module as fast\nexcept ImportError:\n    fast = None"],
        None,
    ),
    "a conditional redefinition keeps the definition before it": (
        "r = f()",
        ["def f(): return 1", "if False:\n    def f(): return 2"],
        1,
    ),
    "a method put on a class": (
        "r = A().f()",
        ["class A: pass", "K = 7\ndef g(self): return K", "A.f = g"],
        7,
    ),
    "a method put on a class by setattr": (
        "r = A().f()",
        ["class A: pass", "setattr(A, 'f', lambda self: 8)"],
        8,
    ),
    "a table that is filled": ("r = T['a'](1)", ["T = {}", "def f(x): return x + 1", "T['a'] = f"], 2),
    "a constant that grows": ("r = N", ["N = 1", "N += 2", "N *= 2"], 6),
    "a class that inherits from its older self": (
        "r = A().f(), A().g()",
        ["class A:\n    def f(self): return 1", "class A(A):\n    def g(self): return 2"],
        (1, 2),
    ),
    "a default keeps the value it was made with": (
        "r = f(), K",
        ["K = 1", "def f(k=K): return k", "K = 2"],
        (1, 2),
    ),
    "a decorator is called with what it knew then": (
        "r = f(), g()",
        ["def note(): return 'old'", "def deco(f):\n    word = note()\n    return lambda: word",
         "@deco\ndef f(): pass", "def note(): return 'new'", "@deco\ndef g(): pass"],
        ("old", "new"),
    ),
    "the last of several definitions": ("r = f()", ["def f(): return 1", "def f(): return 2"], 2),
    "two statements on one line": ("r = A, B", ["A = 1; B = (A +\n  1); print('no')"], (1, 2)),
    "tabs, comments and blank lines": (
        "\n# first\nif True:\n\tr = 1\n\n\n",
        ["# nothing here\n"],
        1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CARRIED)
def test_carries(case):
    body, cells, expected = CARRIED[case]
    assert value(body, *cells) == expected


def test_dotted_imports_of_one_package_add_up():
    script = sliced("xml.dom, xml.sax", "import xml.dom", "import xml.sax as unused, xml.sax")
    assert script.text.startswith("import xml.dom\nimport xml.sax\n")
