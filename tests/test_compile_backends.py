"""The reader's interpreter beside eager on generated programs, its frees, passes and replays.

About 40 seconds on two cores.
"""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import StorageTracker
from helpers.lessons.backend_promises import StaticReplay, drop_ones
from helpers.lessons.compile_backends import (
    Levels,
    boxed,
    decompositions_for_training,
    interpret,
    last_uses,
    training_backend,
)

# Of a square matrix h and inputs x, w (4, 4), b (4): another square matrix. Each allows gradients.
STEPS = {
    "matmul": lambda h, x, w, b: h @ w,
    "tanh": lambda h, x, w, b: h.tanh(),
    "broadcast": lambda h, x, w, b: h + b,
    "column": lambda h, x, w, b: h * b[:, None],
    "transpose": lambda h, x, w, b: h.t(),
    "expand": lambda h, x, w, b: h + b.sin().expand(4, 4),
    "view": lambda h, x, w, b: h.reshape(2, 8).sin().view(4, 4),
    "rows": lambda h, x, w, b: torch.cat([h[2:], h[:2].exp().clamp(max=9)]),
    "write": lambda h, x, w, b: (h * 1).mul_(0.5),
    "write a view": lambda h, x, w, b: _row_written(h),
    "softmax": lambda h, x, w, b: h.softmax(-1),
    "normalise": lambda h, x, w, b: torch.nn.functional.layer_norm(h, (4,), b),
    "input again": lambda h, x, w, b: h - x.t(),
    "times one": lambda h, x, w, b: h * 1.0,
    "plus nothing": lambda h, x, w, b: h + 0,
    "two results": lambda h, x, w, b: torch.cat(h.topk(2).values.split(1, 1) * 2, 1),
    "write the input": lambda h, x, w, b: (x.add_(1), h)[1],
}
programs = st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=7)


def _row_written(h):
    copy = h.clone()
    copy[1].mul_(2)
    return copy


def program(names):
    def run(x, w, b):
        h = x + b
        for name in names:
            h = STEPS[name](h, x, w, b)
        return h, h.square().mean(), x[0]

    return run


def inputs(size=4):
    torch.manual_seed(0)
    x, w, b = torch.randn(size, 4), torch.randn(4, 4), torch.randn(4)
    return x, w.requires_grad_(), b.requires_grad_()


def everything(function):
    """Results, gradients, the inputs afterwards, and whether the last result is still a view."""
    x, w, b = inputs()
    h, loss, row = function(x, w, b)
    gradients = torch.autograd.grad(loss, [w, b], allow_unused=True)
    shared = row.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    tensors = [h.detach(), loss.detach(), row, x, *(g for g in gradients if g is not None)]
    return [*tensors, torch.tensor(shared)]


def agree(function, backend):
    torch._dynamo.reset()
    compiled = everything(torch.compile(function, backend=backend))
    expected = everything(function)
    return len(compiled) == len(expected) and all(map(torch.equal, compiled, expected))


@settings(derandomize=True, deadline=None, max_examples=30)
@given(programs)
def test_interpreter_is_eager_to_the_last_bit(names):
    assert agree(program(names), "interpreter")


@settings(derandomize=True, deadline=None, max_examples=15)
@given(programs)
def test_dropping_ones_changes_no_bit(names):
    def compile_graph(graph, example_inputs):
        drop_ones(graph)
        return interpret(graph)

    assert agree(program(["times one", *names, "times one"]), training_backend(compile_graph))


def test_ones_are_dropped_only_where_nobody_can_tell():
    def chain(x, counts):
        kept = (counts * 1.0).sum() + (x.expand(3, 4) * 1).view(12)[:4].sum()
        return (x * 1).sin() * kept, x * 1.0, (x * 1).view(2, 2)

    levels = Levels()
    torch._dynamo.reset()
    torch.compile(chain, backend=levels)(torch.randn(4), torch.arange(4))
    assert drop_ones(levels.graphs["inference"]) == 1


def test_each_value_dies_once_and_after_its_last_reader():
    levels = Levels()
    torch._dynamo.reset()
    torch.compile(program(sorted(STEPS)), backend=levels)(*inputs())[1].backward()
    for level in ("forward", "backward"):
        nodes = list(levels.graphs[level].graph.nodes)
        deaths = last_uses(levels.graphs[level].graph)
        at = {value: i for i, node in enumerate(nodes) for value in deaths[node]}
        assert sum(map(len, deaths.values())) == len(at) == len(nodes) - 1
        for i, node in enumerate(nodes):
            assert all(at[value] >= i for value in node.all_input_nodes)
            if node in at:
                readers = [nodes.index(user) for user in node.users]
                assert at[node] == max(readers, default=i)


def test_interpreter_lets_go_of_what_it_has_read():
    levels = Levels()
    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(lambda x: x.sin().cos().tan().exp(), backend=levels)(torch.ones(1000))
    peaks = {}
    for free in (True, False):
        given_in, tracker = [torch.ones(1000)], StorageTracker()
        with tracker:
            interpret(levels.graphs["inference"], free=free)(given_in)
        peaks[free] = tracker.peak
    assert peaks == {True: 2 * 4000, False: 5 * 4000}


@pytest.mark.parametrize("size", [2, 5])
def test_a_dynamic_size_comes_as_a_number(size):
    graphs = []

    def compile_graph(graph, example_inputs):
        graphs.append(graph)
        return interpret(graph)

    torch._dynamo.reset()
    function = program(["matmul", "broadcast", "tanh"])
    compiled = torch.compile(function, backend=training_backend(compile_graph), dynamic=True)
    for rows in (3, size):
        found, expected = compiled(*inputs(rows)), function(*inputs(rows))
        assert all(map(torch.equal, found, expected))
    assert len(graphs) == 2  # the second size compiled nothing


def test_a_class_attribute_does_not_mark_the_backward_as_boxed():
    class Runner:
        _boxed_call = True

        def __init__(self, graph):
            self.run = interpret(graph)

        def __call__(self, inputs):
            return self.run(inputs)

    def compiled(wrap):
        torch._dynamo.reset()
        backend = training_backend(lambda graph, example_inputs: wrap(graph))
        return everything(torch.compile(program(["matmul"]), backend=backend))

    assert compiled(lambda graph: boxed(Runner(graph)))
    with pytest.raises(TypeError, match="positional arguments"), pytest.warns(UserWarning):
        compiled(Runner)


def test_one_decomposition_alone_spoils_the_gradient():
    flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
    core = torch._decomp.core_aten_decompositions()
    assert set(core) - set(decompositions_for_training()) == {flash}
    q = torch.randn(2, 4, 8, 8, requires_grad=True)

    def attend(q):
        return torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)

    def gradient(function):
        (g,) = torch.autograd.grad(function(q).square().sum(), q)
        return g

    far = {}
    for name, table in {"core": core, "training": decompositions_for_training()}.items():
        torch._dynamo.reset()
        compiled = torch.compile(attend, backend=Levels(decompositions=table))
        assert torch.allclose(compiled(q), attend(q), atol=1e-6)
        expected = gradient(attend)
        far[name] = ((gradient(compiled) - expected).norm() / expected.norm()).item()
    assert far["core"] > 1 and far["training"] < 1e-5


@settings(derandomize=True, deadline=None, max_examples=8)
@given(programs.map(lambda names: [n for n in names if n != "write the input"]))
def test_a_replay_is_right_until_the_next(names):
    torch._dynamo.reset()
    function, results = program(names), []
    compiled = torch.compile(function, backend="static_replay")
    values = [t.detach() for t in inputs()]
    with torch.no_grad():
        for factor in (1, 2, 3):
            given_in = [factor * t for t in values]
            found, expected = compiled(*given_in), function(*given_in)
            assert all(map(torch.equal, found, expected))
            results.append(found[:2])  # the third is a view of the input, which is the caller's
    assert all(a.data_ptr() == b.data_ptr() for a, b in zip(results[0], results[2], strict=True))


def test_a_replay_copies_its_inputs_into_places_of_its_own():
    levels = Levels()
    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(lambda x: x + 1, backend=levels)(torch.zeros(3))
    replay, first = StaticReplay(levels.graphs["inference"]), torch.zeros(3)
    (result,) = replay([first])
    replay([torch.ones(3)])
    assert first.tolist() == [0, 0, 0] and result.tolist() == [2, 2, 2]
