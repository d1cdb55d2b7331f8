"""Registrations that an export cell makes may run again: in the kernel, and as a lesson."""

import pytest

from helpers.compat import register_backend
from helpers.paths import BookError

torch = pytest.importorskip("torch")


def make_backend(calls: list, label: str):
    @register_backend("compat_test")
    def backend(graph, example_inputs):
        calls.append(label)
        return graph.forward

    return backend


def test_the_latest_backend_of_a_name_wins():
    calls, x = [], torch.ones(2)
    make_backend(calls, "first")
    first = torch.compile(lambda x: x + 1, backend="compat_test")
    make_backend(calls, "second")
    second = torch.compile(lambda x: x + 2, backend="compat_test")
    assert torch.equal(first(x), x + 1) and torch.equal(second(x), x + 2)
    assert calls == ["first", "second"]


def test_torch_still_refuses_what_the_helper_permits():
    """When this fails, torch has become idempotent and the helper can go."""
    from torch._dynamo.backends import registry

    make_backend([], "first")
    with pytest.raises(AssertionError, match="duplicate name"):
        registry.register_backend(lambda graph, inputs: graph, name="compat_test")


@pytest.mark.parametrize("name", ["inductor", "eager"])
def test_names_of_torch_itself_are_refused(name):
    with pytest.raises(BookError, match=f"torch has a backend called '{name}' already"):
        register_backend(name)(lambda graph, inputs: graph)


def make_operator(factor: float):
    @torch.library.custom_op("compat_test::scale", mutates_args=())
    def scale(x: torch.Tensor) -> torch.Tensor:
        return x * factor

    @scale.register_fake
    def _(x):
        return torch.empty_like(x)

    scale.register_autograd(lambda context, grad: grad * factor)
    return scale


def test_custom_operators_need_no_helper():
    """What helpers.compat says of torch.library: a second definition replaces the first."""
    make_operator(2.0)
    operator = make_operator(3.0)
    compiled = torch.compile(lambda x: operator(x) + 1, backend="aot_eager", fullgraph=True)
    x = torch.ones(2, requires_grad=True)
    assert torch.equal(operator(x), 3 * x)
    y = compiled(x)
    assert torch.equal(y, 3 * x + 1)
    assert torch.equal(torch.autograd.grad(y.sum(), x)[0], torch.full((2,), 3.0))
