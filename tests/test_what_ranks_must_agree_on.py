"""What the pages on agreement build, beyond what they prove. About 10 s."""

import pytest
import torch
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from helpers import GraphRecorder
from helpers.lessons.crossed_collectives import Diary, parted, read_diaries
from helpers.lessons.preflight import graph_text
from helpers.lessons.statistics_over_ranks import SyncBatchNorm, share
from helpers.lessons.what_ranks_must_agree_on import Disagreement, agree, findings, fingerprint

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
    if ranks > 2:
        others = [rank for rank in range(ranks) if rank != odd]
        assert sentence == f"b: ranks {[odd]} differ from ranks {others}"
    else:
        assert sentence == "b: ranks [1] differ from ranks [0]"


def test_findings_count_what_lies_on_several_ranks():
    rows = [{"equal": {}, "differ": {"rng": "1"}, "disjoint": {"s": s}} for s in ([1, 2], [2, 3])]
    assert findings(rows) == ["rng: the same on ranks [0, 1]", "s: 1 of 3 lie on several ranks"]


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
    ]
    assert len({base, *others}) == 5


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
    assert first == "allreduce_ [[2]] cats in `dist.all_reduce(torch.ones(2))`"
    assert second == "allreduce_ [[3]]  in `dist.all_reduce(torch.ones(3))`"
    assert parted([[first], [first, second]]) == (1, ("nothing", second))
    assert parted([[first], [first]]) is None


@exact
@given(st.integers(1, 40), st.integers(1, 6), st.integers(0, 3))
def test_shares_are_of_one_length_and_cover_everything(samples, world_size, epoch):
    if samples < world_size:
        samples += world_size
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
