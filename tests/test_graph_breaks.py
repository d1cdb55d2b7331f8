"""Split against Dynamo and eager, on generated programs. About 40 seconds."""

import itertools
import linecache

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from helpers import GraphRecorder  # noqa: E402
from helpers.lessons.across_the_gap import crossing, resume_functions  # noqa: E402
from helpers.lessons.graph_breaks import Split, live_before, statements_of  # noqa: E402

notes = []


@torch._dynamo.disable
def note(value):
    notes.append(value.detach().clone())


def function_of(lines):
    """A function f(a, b) with this body, whose source inspect finds."""
    source = "def f(a, b):\n" + "".join(f"    {line}\n" for line in lines)
    file = f"<generated {next(numbers)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    scope = {"torch": torch, "note": note}
    exec(compile(source, file, "exec"), scope)
    return scope["f"]


numbers = itertools.count()


@st.composite
def bodies(draw, variables, depth):
    """Lines, and the variables that are set after them."""
    lines, variables = [], list(variables)
    for _ in range(draw(st.integers(1, 4))):
        kinds = ["unary", "binary", "binary", "note"] + ["if"] * (depth > 0)
        kind, one, other = (
            draw(st.sampled_from(kinds)),
            *(draw(st.sampled_from(variables)) for _ in "ab"),
        )
        if kind == "note":
            lines.append(f"note({one})")
        elif kind == "if":
            lines.append(f"if {one}.sum() > {draw(st.integers(-2, 2))}:")
            lines += ["    " + line for line in draw(bodies(variables, depth - 1))[0]]
            if draw(st.booleans()):
                lines.append("else:")
                lines += ["    " + line for line in draw(bodies(variables, depth - 1))[0]]
        else:
            target = draw(st.sampled_from([*variables, f"v{len(variables)}"]))
            unary = f"torch.{draw(st.sampled_from(['relu', 'neg', 'abs']))}({one})"
            binary = f"{one} {draw(st.sampled_from('+-*'))} {other}"
            lines.append(f"{target} = {unary if kind == 'unary' else binary}")
            variables = list(dict.fromkeys([*variables, target]))
    return lines, variables


@st.composite
def functions(draw, depth):
    lines, variables = draw(bodies(["a", "b"], depth))
    first, second = (draw(st.sampled_from(variables)) for _ in "ab")
    return [*lines, f"return {first} + {second}"]


def outcome(run, seed):
    """Result, notes and gradients for small whole numbers: no addition rounds, so order is free."""
    torch.manual_seed(seed)
    a, b = (torch.randint(-2, 3, (3,)).float().requires_grad_() for _ in range(2))
    notes.clear()
    result = run(a, b)
    if result.requires_grad:
        result.sum().backward()
    grads = [torch.zeros(3) if leaf.grad is None else leaf.grad for leaf in (a, b)]
    return [result.detach(), *notes, *grads]


def same(found, goal):
    return len(found) == len(goal) and all(map(torch.equal, found, goal))


def generated(examples, depth):
    """Not shrunk: each try of a shorter program compiles several graphs."""
    bounds = settings(
        derandomize=True,
        deadline=None,
        max_examples=examples,
        database=None,
        phases=[Phase.generate],
    )
    return lambda test: bounds(given(functions(depth))(test))


def pieces(lines):
    """Bits are eager's; (operations of each graph, live variables of each gap), ours and Dynamo's."""
    function = function_of(lines)
    torch._dynamo.reset()
    mine, theirs = GraphRecorder("aot_eager"), GraphRecorder("aot_eager")
    split, compiled = Split(function, mine), torch.compile(function, backend=theirs)
    with resume_functions() as resumed:
        for seed in range(3):
            goal = outcome(function, seed)
            assert same(outcome(compiled, seed), goal), "Dynamo is not eager"
            assert same(outcome(split, seed), goal), "Split is not eager"
    ops = [[tuple(recorder.ops(i)) for i in range(len(recorder))] for recorder in (mine, theirs)]
    return ops, [sorted(crossing(split.first)), sorted(resumed)]


@generated(examples=12, depth=0)
def test_in_a_straight_line_the_pieces_and_what_is_live_are_dynamos(lines):
    (ours, dynamos), (live, passed) = pieces(lines)
    assert ours == dynamos and live == passed


# Where two ways meet, Dynamo has one piece for the place and Split one for each way.
@generated(examples=12, depth=1)
def test_with_branches_the_distinct_pieces_are_dynamos(lines):
    (ours, dynamos), _ = pieces(lines)
    assert list(dict.fromkeys(ours)) == list(dict.fromkeys(dynamos))


@generated(examples=8, depth=2)
def test_with_branches_in_branches_the_bits_are_eagers(lines):
    pieces(lines)


def test_the_generator_reaches_gaps_arms_and_overwriting():
    """Else the property above would hold of nothing."""
    seen = set()

    @settings(derandomize=True, deadline=None, max_examples=25, database=None)
    @given(functions(2))
    def collect(lines):
        text = "\n".join(lines)
        for what in ("note", "else", "\n    if", "a = "):
            if what in text:
                seen.add(what)

    collect()
    assert seen == {"note", "else", "\n    if", "a = "}


@pytest.mark.parametrize(
    ("lines", "live"),
    [
        (["c = a", "return c"], {"a"}),
        (["a = b", "return a"], {"b"}),
        (["a += b", "return a"], {"a", "b"}),
        (["a[0] = b", "return a"], {"a", "b"}),
        (["if a:", "    c = b", "return c"], {"a", "b", "c"}),
        (["for c in a:", "    b = c", "return b"], {"a", "b", "c"}),
        (["return 1", "c = a"], set()),
    ],
)
def test_what_is_live_before(lines, live):
    assert live_before(statements_of(function_of(lines))) == live


def test_globals_that_are_written_are_refused():
    with pytest.raises(NotImplementedError, match="local variables only"):
        statements_of(function_of(["global note", "note = a", "return a"]))


def test_a_tensor_made_on_the_way_is_no_constant():
    """torch.rand has no proxy among its arguments: it must run at each call, not at capture."""
    split = Split(function_of(["c = torch.rand(3)", "return a + b + c"]), GraphRecorder())
    a = torch.zeros(3)
    assert not torch.equal(split(a, a), split(a, a))


def test_in_place_operators_change_the_argument():
    split = Split(function_of(["c = a * 2", "a += b", "return a + c"]), GraphRecorder())
    a, b = torch.ones(3), torch.ones(3)
    assert torch.equal(split(a, b), torch.full((3,), 4.0)) and torch.equal(a, torch.full((3,), 2.0))


def test_grad_mode_and_shape_make_captures_of_their_own():
    recorder = GraphRecorder()
    split = Split(function_of(["return a * b"]), recorder)
    for size in (3, 3, 4):
        split(torch.ones(size), torch.ones(size))
    with torch.no_grad():
        split(torch.ones(3), torch.ones(3))
    assert len(recorder) == 3
