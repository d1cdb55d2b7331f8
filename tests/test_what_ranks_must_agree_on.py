"""What the pages on agreement build, beyond what they prove. About 10 s."""

import pytest
import torch
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.distributed._functional_collectives import all_reduce
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from helpers import GraphRecorder
from helpers.lessons.crossed_collectives import Diary, parted, read_diaries
from helpers.lessons.preflight import graph_text
from helpers.lessons.statistics_over_ranks import SyncBatchNorm, share
from helpers.lessons.what_ranks_must_agree_on import (
    Disagreement,
    agree,
    findings,
    fingerprint,
    model_facts,
)

PLAIN = st.recursive(
    st.integers(-3, 3) | st.text("ab", max_size=2) | st.booleans(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text("ab", max_size=2), inner, max_size=2)
        | st.tuples(inner, inner)
    ),
    max_leaves=6,
)
exact = settings(derandomize=True, deadline=None, max_examples=150)


@pytest.fixture
def group_of_one():
    store = dist.HashStore()
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield store
    dist.destroy_process_group()


def spelled(value):
    """`value` so that 1 and True, and the order of a dict, count."""
    if isinstance(value, dict):
        return "dict", [(spelled(key), spelled(inner)) for key, inner in value.items()]
    if isinstance(value, list | tuple):
        return type(value).__name__, [spelled(inner) for inner in value]
    return repr(value)


@exact
@given(PLAIN, PLAIN)
def test_fingerprints_are_equal_exactly_where_values_are(one, other):
    assert (fingerprint(one) == fingerprint(other)) == (spelled(one) == spelled(other))


def test_fingerprints_see_dtype_shape_and_bits_but_not_strides():
    zero = torch.zeros(2, 3)
    others = [zero.double(), zero.reshape(3, 2), -zero, zero.int(), torch.zeros(6), [zero]]
    digests = [fingerprint(value) for value in (zero, *others)]
    assert len(set(digests)) == len(digests)
    assert fingerprint([[1], 2]) != fingerprint([[1, 2]])
    wide = torch.arange(6.0).reshape(2, 3)
    assert fingerprint(wide) == fingerprint(wide.t().contiguous().t())
    for special in (torch.zeros(()), torch.zeros(0), torch.ones(3, dtype=torch.bfloat16)):
        assert fingerprint(special) == fingerprint(special.clone())


@exact
@given(st.integers(2, 6), st.data())
def test_findings_name_the_rank_that_differs(ranks, data):
    odd = data.draw(st.integers(0, ranks - 1))
    kind = data.draw(st.sampled_from(["value", "absent"]))
    rows = [
        {"equal": {"a": "x", "b": "x"}, "differ": {"rng": str(rank)}, "disjoint": {"s": [rank]}}
        for rank in range(ranks)
    ]
    assert findings(rows) == []
    if kind == "value":
        rows[odd]["equal"]["b"] = "z"
    else:
        del rows[odd]["equal"]["b"]
    (sentence,) = findings(rows)
    if kind == "absent":
        assert sentence == f"b: absent on ranks {[odd]}"
    elif ranks > 2:
        others = [rank for rank in range(ranks) if rank != odd]
        assert sentence == f"b: ranks {[odd]} differ from ranks {others}"
    else:
        assert sentence == "b: ranks [1] differ from ranks [0]"


def test_findings_count_what_lies_on_several_ranks():
    rows = [{"equal": {}, "differ": {"rng": "1"}, "disjoint": {"s": s}} for s in ([1, 2], [2, 3])]
    assert findings(rows) == ["rng: the same on ranks [0, 1]", "s: 1 of 3 lie on several ranks"]


def test_a_fact_that_cannot_be_made_is_raised_with_its_rank(group_of_one):
    with pytest.raises(Disagreement, match=r"^rank 0: ZeroDivisionError"):
        agree(lambda: {"half": 1 // 0})
    with pytest.raises(Disagreement, match=r"^rank 0: TypeError: no fingerprint of a set"):
        agree({"tags": {"a"}})


def test_facts_of_a_model_include_what_no_tensor_shows():
    def facts(model):
        return {name: fingerprint(value) for name, value in model_facts(model).items()}

    base = facts(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.1)))
    for model, name in (
        (torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.2)), "modules"),
        (torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.1)).eval(), "training"),
    ):
        other = facts(model)
        assert [n for n in base if base[n] != other[n] and not n.startswith("0.")] == [name]


def test_one_rank_agrees_with_itself(group_of_one):
    agree({"a": torch.ones(2)}, {"b": 1}, {"c": [1, 2]})
    assert issubclass(Disagreement, RuntimeError)


def graph_of(function, *inputs):
    torch._dynamo.reset()
    recorder = GraphRecorder()
    torch.compile(function, backend=recorder)(*inputs)
    return graph_text(recorder.graphs[0])


def test_graphs_differ_in_text_where_operators_constants_sizes_or_wiring_do():
    x, y = torch.ones(3), torch.ones(3)
    base = graph_of(lambda x, y: (x * 2).sin() - y, x, y)
    assert base == graph_of(lambda u, v: (u * 2).sin() - v, x, y)  # names do not matter
    others = [
        graph_of(lambda x, y: (x * 3).sin() - y, x, y),
        graph_of(lambda x, y: (x * 2).cos() - y, x, y),
        graph_of(lambda x, y: y - (x * 2).sin(), x, y),
        graph_of(lambda x, y: (x * 2).sin() - y, torch.ones(4), torch.ones(4)),
        graph_of(lambda x, y: (x * 2).sin() - y, x.double(), y.double()),
    ]
    assert len({base, *others}) == 6


def test_graphs_differ_in_text_where_a_constant_or_a_body_does():
    def with_constant(number):
        return graph_text(make_fx(lambda x: x + torch.tensor([1.0, number]))(torch.ones(2)))

    assert with_constant(2.0) == with_constant(2.0) != with_constant(3.0)

    def with_body(body):
        x = torch.ones(2, requires_grad=True)
        return graph_of(lambda x: checkpoint(body, x, use_reentrant=False), x)

    assert with_body(torch.sin) == with_body(torch.sin) != with_body(torch.cos)


class AtTheCall(TorchDispatchMode):
    """Outside a diary: how much is written when a collective really starts."""

    def __init__(self, store):
        super().__init__()
        self.store, self.written = store, []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace == "c10d":
            self.written.append(len(read_diaries(self.store, 1)[0]))
        return func(*args, **(kwargs or {}))


def test_the_diary_is_written_before_the_call_and_names_its_subject(group_of_one):
    store = dist.HashStore()
    with AtTheCall(store) as calls, Diary(store, 0) as diary:
        with diary.on("cats"):
            dist.all_reduce(torch.ones(2))
        dist.all_reduce(torch.ones(3))
    assert calls.written == [1, 2]
    ((first, second),) = read_diaries(store, 1)
    assert first == "group 0: allreduce_ [2] torch.float32 cats in `dist.all_reduce(torch.ones(2))`"
    assert second == "group 0: allreduce_ [3] torch.float32  in `dist.all_reduce(torch.ones(3))`"
    assert parted([[first], [first, second]]) == (1, ("nothing yet", second))
    assert parted([[first], [first]]) is None


def test_the_diary_keeps_groups_apart_and_leaves_compiled_code_compiled(group_of_one):
    store, recorder = dist.HashStore(), GraphRecorder()
    group = dist.new_group()
    torch._dynamo.reset()
    add = torch.compile(lambda x: all_reduce(x, "max", group) + 1, backend=recorder)
    with Diary(store, 0):
        dist.broadcast(torch.ones(2).bfloat16(), 0)
        add(torch.ones(3))
    assert recorder.calls == 1
    (first,), (second,) = (read_diaries(store, 1, g)[0] for g in ("0", group.group_name))
    assert first.startswith("group 0: broadcast_ [2] torch.bfloat16, root_rank=0 ")
    assert second.startswith(
        f"group {group.group_name}: all_reduce [3] torch.float32, reduce_op=max "
    )
    assert read_diaries(store, 1) == [[first, second]]


@exact
@given(st.integers(1, 40), st.integers(1, 6), st.integers(0, 3))
def test_shares_are_of_one_length_and_cover_everything(samples, world_size, epoch):
    parts = [share(samples, rank, world_size, 0, epoch) for rank in range(world_size)]
    assert len({len(part) for part in parts}) == 1
    assert set().union(*parts) == set(range(samples))
    assert sum(map(len, parts)) - samples < world_size


def test_one_rank_of_batchnorm_is_batchnorm(group_of_one):
    x = torch.randn(16, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()
    ours, theirs = SyncBatchNorm(3), torch.nn.BatchNorm1d(3)
    weights = torch.arange(48.0).reshape(16, 3).cos()
    gradients = []
    for layer in (ours, theirs):
        (gradient,) = torch.autograd.grad((layer(x) * weights).sum(), x)
        gradients.append(gradient)
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(ours.running_var, theirs.running_var)
    torch.testing.assert_close(ours.eval()(x), theirs.eval()(x))
