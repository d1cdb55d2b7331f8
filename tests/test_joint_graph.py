"""The joint graph: phases, splits, the minimum cut against every plan, budgets, replayed draws.

About 40 s on two idle cores.
"""

import math

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from helpers.lessons.draw_twice import REPLAY, replay, states_shown
from helpers.lessons.joint_graph import (
    JointGraph,
    capture,
    equal,
    held,
    run_apart,
    run_graph,
    split,
)
from helpers.lessons.minimum_cut import best_of_all, cheapest, is_random, runs_once
from helpers.lessons.small_gpt import GPT, Config, batch, loss_fn
from helpers.lessons.what_to_recompute import pytorch_split, run_counted, within

ONE = torch.ones(())
BUDGETS = 1.0, 0.8, 0.6, 0.4, 0.2, 0.0
STEPS = "sin", "exp", "tanh", "relu", "matmul", "turn", "halves", "norm", "skip", "softmax"


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def chain(steps):
    """A scalar function of (x, w), 8 x 8 each, made of named steps."""

    def function(x, w):
        h = first = x * 1.0
        for step in steps:
            if step == "matmul":
                h = h @ w / 8
            elif step == "turn":
                h = h.t()
            elif step == "halves":
                left, right = h.chunk(2, dim=1)
                h = torch.cat([right, left.sigmoid()], dim=1)
            elif step == "norm":
                h = torch.nn.functional.layer_norm(h, (8,))
            elif step == "skip":
                h = h + first.roll(1, 0)  # which only the addition needs
            elif step == "softmax":
                h = h.softmax(dim=-1)
            else:
                h = getattr(h, step)()
        return h.square().mean()

    return function


def graph_of(steps):
    torch.manual_seed(0)
    return capture(chain(steps), *(torch.randn(8, 8, requires_grad=True) for _ in range(2)))


@example(["exp", "matmul", "sin", "skip", "exp"])
@example(["sin", "halves", "exp", "skip"])
@settings(max_examples=10, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(STEPS), min_size=2, max_size=5))
def test_splits_of_generated_graphs_equal_the_joint_graph_and_no_plan_is_cheaper(steps):
    whole, primals = graph_of(steps)
    goal = run_graph(whole.joint, *primals, ONE)
    assert equal(run_apart(*split(whole, whole.read_by_backward), primals), goal)
    for price in (0.0, 0.03, 0.3, 3.0, math.inf):
        plan = cheapest(whole, price)
        assert equal(run_apart(*split(whole, plan.saved), primals), goal)
        bill = plan.nbytes + (price * plan.work if plan.work else 0)
        assert math.isclose(bill, best_of_all(whole, price), abs_tol=1e-9)
    for share in (0.0, 0.3, 0.7):
        budget = int(share * cheapest(whole, math.inf).nbytes)
        plan = within(whole, max(budget, cheapest(whole, 0.0).nbytes))
        kept, *_, results = run_counted(*split(whole, plan.saved), primals)
        assert kept == plan.nbytes <= max(budget, cheapest(whole, 0.0).nbytes)
        assert equal(results, goal)


def gpt_graph(layers, dropout=0.0):
    model, (x, y) = GPT(Config(layers=layers, dropout=dropout)), batch(0, size=2)
    return capture(lambda x, y: loss_fn(model(x), y), x, y)


def test_at_pytorchs_bytes_there_is_hardly_more_work():
    whole, primals = gpt_graph(layers=3)
    goal = run_graph(whole.joint, *primals, ONE)
    step = run_counted(*split(whole, whole.read_by_backward), primals)[2]
    for budget in BUDGETS:
        theirs = run_counted(*pytorch_split(whole, budget), primals)
        plan = within(whole, theirs[0])
        ours = run_counted(*split(whole, plan.saved), primals)
        assert ours[0] <= theirs[0], budget
        assert ours[2] - step <= 1.05 * (theirs[2] - step) + 0.01 * step, budget
        assert equal(ours[3], goal) and equal(theirs[3], goal), budget


def test_the_backend_trains_with_eagers_gradients():
    model, (x, y) = GPT(Config(layers=1)), batch(0, size=2)
    parameters = list(model.parameters())

    def loss_of(x, y, parameters):
        return loss_fn(model(x), y)

    kept, grads = {}, {}
    for backend in ("eager", "plain_split", "mincut"):
        kept[backend], _, grads[backend] = held(loss_of, backend, x, y, parameters)
    assert equal(grads["plain_split"], grads["eager"]) and equal(grads["mincut"], grads["eager"])
    assert kept["mincut"] < kept["plain_split"] == kept["eager"]


def test_draws_run_once_or_are_replayed_with_the_same_numbers():
    whole, primals = gpt_graph(layers=1, dropout=0.1)
    shown = JointGraph(states_shown(whole.joint), len(whole.outputs))

    def seeded(run, *args):
        torch.manual_seed(3)
        return run(*args)

    goal = seeded(run_graph, whole.joint, *primals, ONE)
    assert equal(seeded(run_graph, shown.joint, *primals, ONE), goal)
    random = {node for node in whole.forward if is_random(node)}
    assert random and not random.intersection(cheapest(whole, 0.0).again)
    plan = cheapest(shown, 0.0)
    assert plan.nbytes == len(random) * torch.get_rng_state().numel()
    forward, backward = split(shown, plan.saved, REPLAY)
    targets = [node.target for node in backward.graph.nodes]
    assert targets.count(replay) == len(random)
    assert equal(seeded(run_apart, forward, backward, primals), goal)
    # Without the replay the backward draws on, and this test can see that.
    assert not equal(seeded(run_apart, *split(shown, plan.saved), primals), goal)


def test_attention_is_random_only_with_dropout():
    whole, _ = gpt_graph(layers=1)
    attention = [n for n in whole.forward if "attention" in str(n.target)]
    assert attention and not any(map(runs_once, attention))


def test_symbolic_sizes_are_refused():
    with pytest.raises(ValueError, match="dynamic=False"):
        joint, _ = graph_of(["sin"])
        node = next(iter(joint.joint.graph.nodes))
        shapes = torch.fx.experimental.symbolic_shapes.ShapeEnv()
        node.meta["val"] = shapes.create_unbacked_symint()
        JointGraph(joint.joint, 1)


def test_a_budget_below_what_must_be_kept_is_refused():
    whole, _ = gpt_graph(layers=1, dropout=0.1)
    with pytest.raises(ValueError, match="must be kept"):
        within(whole, 0)
