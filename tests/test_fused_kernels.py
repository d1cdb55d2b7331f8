"""What shares a kernel, what may not, what falls back, and who is told. About 20 s."""

import torch
from torch.nn import functional as F

from helpers.lessons.fused_kernels import is_counted
from helpers.lessons.fusing_backend import FusedBackend, Load, Reduce, Reference


def compiled(function, *inputs):
    """(result, backend) of a call through the reference target."""
    torch._dynamo.reset()
    backend = FusedBackend(Reference())
    return torch.compile(function, backend=backend, fullgraph=True)(*inputs), backend


def test_softmax_is_one_kernel_with_two_reductions():
    x = torch.randn(3, 5)
    y, backend = compiled(lambda x: F.softmax(x, -1), x)
    [kernel] = backend.kernels
    reduces = [v for v in kernel.values if isinstance(v.how, Reduce)]
    assert [v.how.name for v in reduces] == ["amax", "sum"] and [v.loop for v in reduces] == [1, 2]
    assert len(kernel.inputs) == len(kernel.outputs) == 1 and torch.allclose(y, F.softmax(x, -1))


def test_a_detour_through_aten_parts_a_group():
    def detour(h):
        e = h.exp()
        return (e + e @ h) * e.sum()

    h = torch.randn(4, 4)
    y, backend = compiled(detour, h)
    assert torch.allclose(y, detour(h)) and len(backend.kernels) == 2


def test_a_detour_through_another_group_parts_a_group():
    """x -> sum over rows (one kernel) -> sum over columns of that -> back to x's shape."""

    def detour(x):
        e = x.exp()
        row = (e * 2).sum(0)
        return e + row.sum() * e.sum(1, keepdim=True)

    x = torch.randn(4, 6)
    y, backend = compiled(detour, x)
    assert torch.allclose(y, detour(x)) and not backend.fallen


def test_a_row_value_of_square_shape_is_not_taken_for_a_broadcast_one():
    x = torch.randn(5, 5)
    for function in (
        lambda x: x + x.sum(1),  # broadcast over rows, though the sum has one value for each row
        lambda x: x + x.sum(1)[:, None],
        lambda x: x.sum(0) + x.sum(1),
        lambda x: (x.sum(1) + x[0]) * 2,
    ):
        y, backend = compiled(function, x)
        assert torch.equal(y, function(x)), backend.report()


def test_one_input_is_loaded_once_and_numbers_are_not_loaded():
    _, backend = compiled(lambda x: (x * x + x) * 2 + torch.where(x > 0, x, 1.0), torch.randn(7))
    [kernel] = backend.kernels
    assert sum(isinstance(v.how, Load) for v in kernel.values) == 1


def test_an_update_in_place_is_none_when_it_arrives():
    x = torch.randn(6)
    before = x.clone()
    y, backend = compiled(lambda x: x.add_(1).mul(2), x)
    assert torch.equal(x, before + 1) and torch.equal(y, (before + 1) * 2)
    names = [str(n.target) for g in backend.graphs for n in g.graph.nodes]
    assert not any(name.endswith("_.Tensor") for name in names)


def test_fallbacks_have_reasons():
    x = torch.rand(6) + 1
    cases = {
        "torch.float64": lambda x: x.double() * 2,
        "no line for add to torch.float32 alpha": lambda x: torch.add(x, x, alpha=3),
        "rounding_mode": lambda x: torch.div(x, 2, rounding_mode="floor"),
        "no line for pow": lambda x: x**3.5,
        "no line for sum to torch.int64": lambda x: (x > 1.5).sum(),
        "mul of torch.bool": lambda x: (x > 1.5) * (x < 1.8),
    }
    for reason, function in cases.items():
        y, backend = compiled(function, x)
        assert torch.equal(y, function(x))
        assert backend.fallen and reason in backend.report(), backend.report()


def test_every_pointwise_node_is_counted():
    """By torch's own tag, not by our tables: else what we forget would not be missed."""
    _, backend = compiled(lambda x: torch.erfinv(x) + torch.nextafter(x, x), torch.randn(6))
    nodes = [n for g in backend.graphs for n in g.graph.nodes]
    assert {n.target for n in nodes if is_counted(n)} == {n.target for n, _ in backend.fallen}
