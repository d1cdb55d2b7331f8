"""TreeJit against Dynamo on generated calls, and the parts of a guard tree. About 45 s."""

import logging
from itertools import combinations

import pytest
import torch
from hypothesis import Phase, given, settings
from torch import nn

from helpers.lessons.capture_timing import Guard
from helpers.lessons.guard_tree import GuardTree
from helpers.lessons.guards_and_recompiles import TreeJit
from helpers.lessons.same_reasons import (
    READS,
    VALUES,
    DynamoLog,
    agree,
    call_sequences,
    source_in,
    trial,
)
from helpers.lessons.tracer import CannotCapture


@pytest.fixture(autouse=True)
def quiet():
    torch._logging.set_logs(dynamo=logging.ERROR)
    yield
    torch._logging.set_logs()
    torch._dynamo.reset()


# Not shrunk: a sequence is short enough to read, and each try of one compiles graphs.
@settings(max_examples=30, derandomize=True, deadline=None, database=None, phases=[Phase.generate])
@given(call_sequences())
def test_same_calls_for_the_same_reasons(sequence):
    for call, (mine, dynamo, equal) in enumerate(trial(*sequence)):
        assert agree(mine, dynamo), f"call {call}: yours {mine}, Dynamo's {dynamo}"
        assert equal, f"call {call}: not eager's bits"


@pytest.mark.parametrize("kind", sorted(READS))
def test_each_kind_of_read_recompiles_and_is_named(kind):
    variable = READS[kind][1]
    second = {} if variable is None else {variable: VALUES[variable][1]}
    rows = trial([kind], [{}, second])
    assert [mine[0] for mine, _, _ in rows] == ["capture", "capture"]
    assert all(agree(mine, dynamo) and equal for mine, dynamo, equal in rows)
    (reason,) = rows[1][0][1]
    assert (variable or "steps") in reason


@pytest.mark.parametrize("kind", ["string", "global int", "module int"])
def test_the_ninth_graph_is_not_made(kind):
    variable = READS[kind][1]
    values = ["a" * n if kind == "string" else n for n in range(1, 12)]
    rows = trial([kind], [{variable: value} for value in [*values, values[0], values[-1]]])
    happened = [mine[0] for mine, _, _ in rows]
    assert happened == ["capture"] * 8 + ["eager"] * 3 + ["hit", "eager"]
    assert all(agree(mine, dynamo) and equal for mine, dynamo, equal in rows)


def test_of_two_that_change_at_once_both_name_the_same():
    moving = "string", "closure cell", "global float", "dict entry", "attribute", "module int"
    for kinds in combinations(moving, 2):
        change = {READS[kind][1]: VALUES[READS[kind][1]][1] for kind in kinds}
        _, (mine, dynamo, equal) = trial(list(kinds), [{}, change])
        assert mine == dynamo and mine[0] == "capture" and equal, f"{kinds}: {mine}, {dynamo}"


def test_two_failures_the_one_that_failed_before_is_named():
    changes = [{}, {"mode": "bb"}, {"n": 3}, {"n": 7, "mode": "ccc"}]
    rows = trial(["int", "string"], changes)
    assert [mine[1] for mine, _, _ in rows] == [[], ["mode"], ["n", "mode"], ["mode", "n", "mode"]]
    assert [dynamo[1] for _, dynamo, _ in rows] == [mine[1] for mine, _, _ in rows]


def test_tree_reads_a_shared_part_once_and_stops_at_the_first_failure():
    class Counted(dict):
        reads = 0

        def __getitem__(self, key):
            type(self).reads += 1
            return super().__getitem__(key)

    scope = Counted(d={"a": 1, "b": 2, "c": 3})
    tree = GuardTree()
    for key, value in (("a", 1), ("b", 5), ("c", 3)):
        guard = Guard(key, lambda v: v, value)
        tree.at((("local", "d"), ("item", key))).guards.append(guard)
    assert tree.first_failure(scope) == "b"
    assert Counted.reads == 1
    (branch,) = tree.children
    assert [child.step[1] for child in branch.children] == ["b", "a", "c"]
    assert tree.first_failure({"d": {"a": 1}}) == "b"  # a part that is gone fails its guard


def test_what_cannot_be_captured_is_refused():
    def writes(x, holder):
        holder.step = 1
        return x

    def counts(x, n):
        for _ in range(n):
            x = x + 1
        return x

    with pytest.raises(CannotCapture, match="a write to step"):
        TreeJit(writes)(torch.ones(2), nn.Module())
    jit = TreeJit(counts)
    jit(torch.ones(2), 2)
    with pytest.raises(CannotCapture):  # n is an input now: Dynamo would specialise it
        jit(torch.ones(2), 3)


def test_dynamo_log_names_what_is_new_to_it():
    log = DynamoLog(lambda x, parts: torch.cat(x.split(parts)))
    for parts in ([1, 3], [1, 1, 2]):
        log(torch.ones(4), parts)
    what, (reason,) = log.log[-1]
    assert what == "capture" and reason.startswith("len(parts)")
    assert source_in("0/0: tensor 'x' stride mismatch at index 1. expected 3, actual 1") == (
        "x.stride(1)"
    )
