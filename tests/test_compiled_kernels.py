"""Generated graphs: kernels in C++ against eager, their definition, and the cache. About 60 s."""

import ctypes
import os
import subprocess
import sys
from collections import Counter

import pytest
import torch
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from helpers.lessons.compiled_kernels import CppTarget, build_library, default_flags
from helpers.lessons.fused_kernels import POINTWISE, REDUCTIONS
from helpers.lessons.fusing_backend import FusedBackend, Reference
from helpers.lessons.pointwise_cpp import TEXT
from helpers.lessons.small_gpt import Block, Config
from helpers.lessons.triton_kernels import TEXT as TRITON_TEXT

EXACT = {  # bitwise as in eager, whatever the input
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / (y.abs() + 0.5),
    "neg": lambda x, y: -x,
    "relu": lambda x, y: torch.relu(x),
    "maximum": lambda x, y: torch.maximum(x, y),
    "minimum": lambda x, y: torch.minimum(x, y),
    "where": lambda x, y: torch.where(x > y, x * 2, y),
    "nan to zero": lambda x, y: torch.where(x.isnan(), 0.0, x),
    "masked": lambda x, y: torch.where((x < 0.5) & (y >= -1) | ~(x != y), x, 1.5),
    "in place": lambda x, y: x.clone().mul_(3).add_(y),
    "amax": lambda x, y: x - y.amax(-1, keepdim=True),
    "amin of columns": lambda x, y: x + y.amin(0),
}
CLOSE = {
    "exp": lambda x, y: (x - 4).exp() * y,
    "log": lambda x, y: (x.abs() + 1).log(),
    "sqrt": lambda x, y: (x.square() + 1).sqrt() + (y.square() + 1).rsqrt(),
    "tanh": lambda x, y: torch.tanh(x) + y,
    "erf": lambda x, y: torch.erf(x) + torch.sin(y),
    "sigmoid": lambda x, y: torch.sigmoid(x) * y,
    "gelu": lambda x, y: F.gelu(x),
    "sum": lambda x, y: x - y.sum(0) / 8,
    "mean": lambda x, y: (x - x.mean(-1, keepdim=True)) * y,
    "var": lambda x, y: x + y.var(-1).unsqueeze(-1),
    "softmax": lambda x, y: F.softmax(x, -1) + y,
    "softmax of columns": lambda x, y: F.softmax(x, 0) * y,
    "layer norm": lambda x, y: F.layer_norm(x, x.shape[-1:]) + y,
    "mean of all": lambda x, y: x - y.mean(),
}
VIEWS = {
    "contiguous": lambda x: x.contiguous(),
    "transposed": lambda x: x.t().contiguous().t(),
    "a slice": lambda x: torch.cat([x, x], 1)[:, ::2],
    "one row": lambda x: x[:1],
    "one column": lambda x: x[:, :1],
    "a vector": lambda x: x[0],
    "an expanded row": lambda x: x[:1].expand_as(x),
}
ODD = (float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e-40)


def run(function, inputs, backend, **options):
    """Output, and gradients of the floating-point inputs that it depends on."""
    torch._dynamo.reset()
    if backend is not None:
        function = torch.compile(function, backend=backend, fullgraph=True, **options)
    inputs = [x.detach().requires_grad_() for x in inputs]
    y = function(*inputs)
    torch.manual_seed(1)
    grads = torch.autograd.grad(y, inputs, torch.randn_like(y), allow_unused=True)
    return [y.detach(), *(g for g in grads if g is not None)]


def difference(a, b, bitwise):
    """Empty if equal (to 64 ulp of the largest element unless bitwise), NaN and inf in place."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{a.shape} {a.dtype} for {b.shape} {b.dtype}"
    finite = b.isfinite()
    if not torch.equal(a.nan_to_num(7, 8, 9)[~finite], b.nan_to_num(7, 8, 9)[~finite]):
        return "NaN or inf elsewhere"
    a, b = a[finite].double(), b[finite].double()
    most = (a - b).abs().max().item() if len(a) else 0.0
    unit = torch.finfo(torch.float32).eps * max(1.0, b.abs().max().item() if len(b) else 0.0)
    return "" if most <= (0 if bitwise else 64 * unit) else f"{most / unit:.0f} ulp"


@st.composite
def graphs(draw, names):
    """(function of two tensors, those, what they are called)"""
    rows, columns = draw(st.sampled_from([(3, 8), (17, 33), (70, 5), (1, 9), (4, 130)]))
    steps = draw(st.lists(st.sampled_from(sorted(names)), min_size=2, max_size=5))
    views = [draw(st.sampled_from(sorted(VIEWS))) for _ in range(2)]
    odd = draw(st.booleans())
    swapped = draw(st.lists(st.booleans(), min_size=len(steps), max_size=len(steps)))
    torch.manual_seed(draw(st.integers(0, 99)))
    base, other = torch.randn(2, rows, columns)
    if odd:
        base.view(-1)[: len(ODD)] = torch.tensor(ODD)
    first = "contiguous" if views[0] in ("one row", "one column", "a vector") else views[0]
    inputs = [VIEWS[first](base), VIEWS[views[1]](other)]

    def function(x, y):
        z = x
        for name, swap in zip(steps, swapped, strict=True):
            z = names[name](y.expand_as(z), z) if swap else names[name](z, y)
        return z

    return function, inputs, (steps, swapped, [first, views[1]], (rows, columns), odd)


SEEN = Counter()


def compare(graph, exact):
    function, inputs, what = graph
    note(str(what))
    backend = FusedBackend(CppTarget())
    ours, eager = run(function, inputs, backend), run(function, inputs, None)
    wrong = difference(ours[0], eager[0], exact)
    assert not wrong, f"output: {wrong}"
    for a, b in zip(ours[1:], eager[1:], strict=True):  # sums over what was broadcast
        wrong = difference(a, b, False)
        assert not wrong, f"gradient: {wrong}"
    SEEN["graphs"] += 1
    SEEN["fused"] += len(backend.fused)
    SEEN["fallen"] += len(backend.fallen)


QUICK = settings(
    derandomize=True, deadline=None, suppress_health_check=list(HealthCheck), database=None
)


@settings(QUICK, max_examples=20)
@given(graphs(EXACT))
def test_exact_graphs_equal_eager(graph):
    compare(graph, exact=True)


@settings(QUICK, max_examples=20)
@given(graphs(EXACT | CLOSE))
def test_any_graphs_are_close_to_eager(graph):
    compare(graph, exact=False)


def test_most_nodes_of_those_graphs_were_generated():
    if not SEEN:
        pytest.fail("run the two tests before this one with it")
    assert SEEN["graphs"] >= 30
    assert SEEN["fused"] >= 0.8 * (SEEN["fused"] + SEEN["fallen"]), SEEN


@settings(QUICK, max_examples=6)
@given(graphs({k: v for k, v in (EXACT | CLOSE).items() if k != "var"}))
def test_bfloat16_equals_the_definition(graph):
    """Inside a kernel float32, rounded when stored: one bfloat16 ulp where functions differ."""
    function, inputs, what = graph
    note(str(what))
    inputs = [x.bfloat16() for x in inputs]
    ours = run(function, inputs, FusedBackend(CppTarget()))
    theirs = run(function, inputs, FusedBackend(Reference()))
    for a, b in zip(ours, theirs, strict=True):
        assert torch.equal(a.isnan(), b.isnan()) and torch.equal(a.isinf(), b.isinf())
        scale = b[b.isfinite()].abs().max().float().item() if b.isfinite().any() else 1.0
        assert torch.allclose(a, b, 2**-7, 2**-7 * max(scale, 1), equal_nan=True)


def test_bfloat16_is_rounded_once():
    x = torch.randn(1000).bfloat16()
    [ours, _] = run(lambda x: (x + 1) * x, [x], FusedBackend(CppTarget()))
    assert torch.equal(ours, ((x.float() + 1) * x.float()).bfloat16())
    assert not torch.equal(ours, (x + 1) * x)


def test_the_tables_hold_the_same_names():
    assert {*TEXT} | {"copy"} == {*POINTWISE} == {*TRITON_TEXT}
    assert {*REDUCTIONS} == {"sum", "mean", "amax", "amin"}


def test_sizes_are_arguments(tmp_path):
    target = CppTarget(tmp_path)
    torch._dynamo.reset()
    function = lambda x, y: F.softmax(x + y, -1)  # noqa: E731
    compiled = torch.compile(function, backend=FusedBackend(target), dynamic=True)
    for rows, columns in ((4, 7), (300, 40), (2, 5000)):
        x, y = torch.randn(rows, columns), torch.randn(columns)
        assert torch.allclose(compiled(x, y), function(x, y), atol=1e-6)
    assert target.compiled == 1


def test_the_block_trains_with_nothing_left_to_aten():
    torch.manual_seed(0)
    block, x = Block(Config(width=64, heads=4)), torch.randn(2, 16, 64)
    backend = FusedBackend(CppTarget())
    torch._dynamo.reset()
    outcomes = []
    for f in (block, torch.compile(block, backend=backend, fullgraph=True)):
        block.zero_grad()
        y = f(x)
        y.square().mean().backward()
        outcomes.append([y, *(p.grad.clone() for p in block.parameters())])
    for a, b in zip(*outcomes, strict=True):
        assert torch.allclose(a, b, 1e-4, 1e-6)
    assert not backend.fallen and backend.fused


def test_an_unknown_operation_runs_in_aten_and_is_reported():
    backend = FusedBackend(CppTarget())
    x = torch.randn(50)
    [ours, _] = run(lambda x: torch.erfinv(x.tanh()) + x.double().float(), [x], backend)
    assert torch.allclose(ours, torch.erfinv(x.tanh()) + x, atol=1e-5)
    assert "ATen runs erfinv: no line for erfinv" in backend.report()
    assert "torch.float64" in backend.report()


def test_zero_elements_and_no_dimensions():
    for x in (torch.randn(0, 4), torch.randn(()), torch.randn(1, 1)):
        for a, b in zip(
            run(lambda x: (x + 1) * 2 - x.sum(), [x], FusedBackend(CppTarget())),
            run(lambda x: (x + 1) * 2 - x.sum(), [x], None),
            strict=True,
        ):
            assert torch.allclose(a, b)


def test_loading_a_kernel_leaves_denormals_alone(tmp_path):
    tiny = torch.tensor([1e-40])
    before = tiny * 1
    build_library('extern "C" void nothing() {}', folder=tmp_path)
    assert before > 0 and torch.equal(tiny * 1, before)
    assert not any("fast-math" in flag for flag in default_flags())


CODE = 'extern "C" int one() { return 1; }'


def test_a_second_process_compiles_nothing(tmp_path):
    program = (
        "from helpers.lessons.compiled_kernels import build_library\n"
        f"library, new = build_library({CODE!r}, folder={str(tmp_path)!r})\n"
        "print(library.one(), new)"
    )
    command = [sys.executable, "-c", program]
    said = [subprocess.run(command, capture_output=True, text=True).stdout for _ in range(2)]
    assert said == ["1 True\n", "1 False\n"]


def test_flags_and_source_are_part_of_the_name(tmp_path):
    for flags, source in (
        (default_flags(), CODE),
        ([*default_flags(), "-O1"], CODE),
        (default_flags(), CODE + "\n"),
    ):
        assert build_library(source, flags, tmp_path)[1]
    assert not build_library(CODE, folder=tmp_path)[1]
    assert len(list(tmp_path.iterdir())) == 3


def test_a_half_written_library_is_never_there(tmp_path, monkeypatch):
    """The compiler dies after it wrote half of its output; the next call compiles anew."""
    real = subprocess.run

    def dies(command, **options):
        if "-o" not in command:
            return real(command, **options)
        with open(command[command.index("-o") + 1], "wb") as file:
            file.write(b"\x7fELF")
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "run", dies)
    with pytest.raises(KeyboardInterrupt):
        build_library(CODE, folder=tmp_path)
    monkeypatch.undo()
    assert not os.listdir(tmp_path)
    library, new = build_library(CODE, folder=tmp_path)
    assert new and library.one() == 1 and isinstance(library, ctypes.CDLL)
