"""What a reader of names cannot see is carried all the same, or refused by name."""

import pytest
from slices import refuses, run, sliced, value

BACKEND = """
from torch._dynamo import register_backend

@register_backend
def mine(gm, example_inputs):
    return gm.forward
"""


def test_a_registration_travels_with_the_string_that_names_it():
    script = sliced("import torch\ntorch.compile(print, backend='mine')", BACKEND)
    assert "@register_backend\ndef mine" in script.text
    assert "def mine" not in sliced("print('other')", BACKEND).text
    named = BACKEND.replace("@register_backend", "@register_backend(name='fancy')")
    assert "def mine" in sliced("print('fancy')", named).text
    by_constant = BACKEND.replace("@register_backend", "NAME = 'x'\n@register_backend(NAME)")
    assert "def mine" in sliced("print(NAME)", by_constant).text
    called = BACKEND.replace("@register_backend", "") + "register_backend(mine)\n"
    assert "\nregister_backend(mine)" in sliced("print('mine')", called).text


def test_a_registration_by_a_helper_function_of_the_notebook():
    cells = [
        "TABLE = {}\ndef register(name):\n    return lambda f: TABLE.setdefault(name, f)",
        "@register('double')\ndef f(x): return 2 * x",
        "@register('triple')\ndef g(x): return 3 * x",
    ]
    assert value("r = TABLE['double'](4)", *cells) == 8
    assert "triple" not in sliced("TABLE['double']", *cells).text


def test_a_string_that_happens_to_be_the_name_of_a_function_brings_nothing():
    cells = ["import torch\nm = torch.nn.ReLU()", "@torch.no_grad()\ndef step(): return m(1)"]
    assert value("r = 'step'", *cells) == "step"


CUSTOM_OP = [
    "import torch\nfrom torch import Tensor\nSCALE = 2",
    "@torch.library.custom_op('slicing_test::double', mutates_args=())\n"
    "def double(x: Tensor) -> Tensor:\n    return x * SCALE",
    "@double.register_fake\ndef _(x): return torch.empty_like(x)",
    "def backward(ctx, grad): return grad * 2",
    "double.register_autograd(backward)",
]


@pytest.mark.parametrize(
    "call", ["double(x)", "torch.ops.slicing_test.double(x)", "torch.ops.slicing_test.double.default(x)"]
)  # fmt: skip
def test_an_operator_comes_with_its_companions(call):
    body = f"""
        from torch._subclasses.fake_tensor import FakeTensorMode
        x = torch.ones(2, requires_grad=True)
        {call}.sum().backward()
        grad = x.grad.tolist()
        with FakeTensorMode() as mode:
            x = mode.from_tensor(x)
            r = grad, tuple({call}.shape)
    """
    assert value(body, *CUSTOM_OP) == ([2.0, 2.0], (2,))


def test_an_operator_found_by_its_string_comes_with_what_calls_registered():
    cells = [cell for cell in CUSTOM_OP if "register_fake" not in cell]
    script = sliced("import torch\ntorch.ops.slicing_test.double(1)", *cells)
    assert "double.register_autograd(backward)" in script.text


def test_an_operator_declared_by_calls():
    cells = [
        "import torch",
        "torch.library.define('slicing_test2::triple', '(Tensor x) -> Tensor')",
        "@torch.library.impl('slicing_test2::triple', 'cpu')\ndef _(x): return x * 3",
        "@torch.library.register_fake('slicing_test2::triple')\ndef _(x): return x.clone()",
    ]
    script = sliced("r = torch.ops.slicing_test2.triple(torch.ones(1)).item()", *cells)
    assert run(script)["r"] == 3
    assert "register_fake" in script.text


def test_singledispatch_comes_with_its_cases():
    cells = [
        "from functools import singledispatch\n@singledispatch\ndef f(x): return 'any'",
        "@f.register\ndef _(x: int): return 'int'",
    ]
    assert value("r = f('a'), f(1)", *cells) == ("any", "int")


def test_hooks_on_data_stay_with_the_data():
    cells = [
        "import torch\nm = torch.nn.ReLU()",
        "def hook(*a): return 1",
        "m.register_forward_hook(hook)",
    ]
    assert value("r = hook()", *cells) == 1


def test_import_star_is_refused_by_name():
    says = ["`sqrt`", "`from math import *` in cell 1", "Import it by name"]
    refuses("sqrt(2)", "from math import *", says=says)
    assert value("r = 3", "from math import *") == 3
    refuses("from math import *\nsqrt(2)", says="`from math import *` in this cell")


@pytest.mark.parametrize(
    ("cells", "name", "says"),
    [
        (["for i in range(2):\n    def f(): return 1"], "f", "Define it at the top level"),
        (["if input():\n    def f(): return 1\n    print()"], "f", "Define it at the top level"),
        (["with open('x'):\n    class A: pass"], "A", "Define it at the top level"),
        (["class A: pass", "A.f = input()"], "A", "tag that cell `torchrun-setup`"),
        (["class A: pass", "setattr(A, 'f', input())"], "A", "tag that cell `torchrun-setup`"),
        (["class A: pass", "for i in 'a': A.f = 1"], "A", "tag that cell `torchrun-setup`"),
        (["def f(): pass", "f = input(f)"], "f", "--push f"),
    ],
)
def test_changes_that_cannot_be_repeated_are_refused_by_name(cells, name, says):
    refuses(f"{name}()", *cells, says=[f"`{name}`", f"cell {len(cells)}, line 1: `", says])


def test_a_planted_function_travels_with_the_module_but_a_setting_does_not():
    cells = ["import string", "def mine(): return 9", "string.planted = mine", "string.setting = 1"]
    script = sliced("r = string.planted()", *cells)
    assert run(script)["r"] == 9
    assert "setting" not in script.text


def test_side_effects_come_only_from_setup_cells():
    cell = "import random\nrandom.seed(3)\nprint('hello')"
    assert "seed" not in sliced("r = random.random()", cell).text
    script = sliced("r = random.random()", (cell, "torchrun-setup"))
    assert script.text.count("import random") == 1
    assert run(script)["r"] == __import__("random").Random(3).random()


def test_a_setup_cell_that_stands_alone_comes_before_imports_others_in_their_turn():
    cells = [
        "import torch, os\nSEED = 1",
        ("import os\nos.environ['SLICING_TEST'] = '1'", "torchrun-setup"),
        ("torch.manual_seed(SEED)\nrng = torch.Generator()", "torchrun-setup"),
    ]
    text = sliced("torch.rand(1, generator=rng)", *cells).text
    order = ["os.environ[", "import torch", "SEED = 1", "torch.manual_seed(SEED)", "__main__"]
    assert sorted(order, key=text.index) == order


def test_a_setup_cell_that_ran_twice_is_carried_once():
    cell = ("import random\nrandom.seed(3)", "torchrun-setup")
    assert sliced("1", cell, cell).text.count("seed") == 1


def test_a_setup_cell_names_what_it_lacks():
    cells = ["x = input()", ("print(x)", "torchrun-setup")]
    refuses("1", *cells, says=["the torchrun-setup cell 2", "--push x"])
