"""What an export cell may hold, and which lessons a piece of source imports."""

import pytest

from helpers.lessons import check_export, imported_lessons
from helpers.paths import BookError


@pytest.mark.parametrize(
    "source",
    [
        '"""A docstring."""\nfrom __future__ import annotations\nimport torch.nn as nn',
        "HEADS = 4\nWIDTH = 2 * -HEADS ** 2\nshape: tuple = (1, 2)\nkinds = {'a': [1.5], None: {2}}",
        "DTYPE = torch.float32\nlimit: int",
        "@dataclass(frozen=True)\nclass A(B):\n    'doc'\n    x: int = field(default=0)\n    y = z()\n"
        "    class Inner:\n        pass\n    def f(self): print(1)",
        "@register_backend('mine')\ndef mine(graph, inputs): return graph",
        "from helpers.compat import register_backend\nfrom helpers import compat\n"
        "@compat.register_backend('mine')\ndef mine(graph, inputs): return graph",
        "@torch.library.custom_op('book::f', mutates_args=())\ndef f(x: Tensor) -> Tensor: ...\n"
        "@f.register_fake\ndef _(x): return x\nf.register_autograd(backward, setup_context=setup)",
        "async def f(): await g()",
        "",
    ],
)
def test_export_cells_may_hold(source):
    check_export(source)


@pytest.mark.parametrize(
    ("source", "line", "reason"),
    [
        ("import torch\ntorch.manual_seed(0)", 2, "runs code"),
        ("x = torch.ones(2)", 1, "runs code"),
        ("x = [f(1)]", 1, "runs code"),
        ("TABLE = {}\nTABLE[f()] = 1", 2, "runs code"),
        ("if True:\n    x = 1", 1, "runs code"),
        ("for i in range(3): pass", 1, "runs code"),
        ("n = 0\nn += 1", 2, "runs code"),
        ("del x", 1, "runs code"),
        ("assert f() == 1", 1, "runs code"),
        ("xs = [i for i in range(3)]", 1, "runs code"),
        ("f = lambda x: x", 1, "runs code"),
        ("class A:\n    x = 1\n    print(x)", 1, r"`print\(x\)` runs code"),
        ("class A:\n    class B:\n        for i in y: pass", 1, "runs code"),
        ("a = 1\nfrom torch import *", 2, "import by full name"),
        ("from .other import f", 1, "import by full name"),
        ("%%torchrun --nproc 2\nprint(1)", 1, "plain Python, and `%%torchrun --nproc 2`"),
        ("import os\n%matplotlib inline", 2, "plain Python"),
        ("!ls", 1, "plain Python"),
        ("import os\nos.path?", 2, "plain Python"),
        ("@torch._dynamo.register_backend\ndef f(g, x): ...", 1, "second time"),
        ("from torch._dynamo import register_backend", 1, "second time"),
        ("import torch\ndef f():\n    torch.library.define('a::b', '()')", 3, "second time"),
    ],
)
def test_export_cells_may_not_hold(source, line, reason):
    with pytest.raises(BookError, match=rf"^here\.md, line {line + 40}: .*{reason}"):
        check_export(source, "here.md", first_line=41)


@pytest.mark.parametrize(
    ("source", "stems"),
    [
        ("from helpers.lessons.a import f, g", {"a"}),
        ("import helpers.lessons.a as y, helpers.lessons.b", {"a", "b"}),
        ("from helpers.lessons import (\n    a,\n    b as c,\n)", {"a", "b"}),
        ("def f():\n    if x:\n        from helpers.lessons.deep import g", {"deep"}),
        ("%%torchrun --nproc 2\nfrom helpers.lessons import a", {"a"}),
        ("%load_ext helpers\nx = !ls\n%time f()\nfrom helpers.lessons import a", {"a"}),
        ("%time import helpers.lessons.a\nfrom helpers.lessons import b", {"a", "b"}),
        ("%%time import helpers.lessons.b\nfrom helpers.lessons import a", {"a", "b"}),
        ("%%bash\npython -c 'import helpers.lessons.a' && ls", {"a"}),
        ("# from helpers.lessons.a import f\ntext = 'import helpers.lessons.b'", set()),
        ("from helpers import lessons\nimport helpers.lessons\nfrom helpers import predict", set()),
        ("from helpers.lessons.a import lessons, small_gpt", {"a"}),
    ],
)
def test_imported_lessons(source, stems):
    assert imported_lessons(source) == stems
