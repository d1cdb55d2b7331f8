"""The gather in the graph and the excluded hooks, on one rank; the page proves them on two."""

import pytest
import torch
from torch import nn

from helpers import GraphRecorder, count_collectives
from helpers.lessons.zero3_coupling import (
    Net,
    Zero3InGraph,
    collectives_in,
    exclude_hooks,
    forget,
)


def test_the_gather_is_in_the_one_graph_and_trains_as_the_module_does(one_rank):
    forget()
    plain = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3))
    twin = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3))
    twin.load_state_dict(plain.state_dict())
    ours, recorder, x = Zero3InGraph(twin), GraphRecorder("aot_eager"), torch.randn(2, 5)
    run = torch.compile(ours, backend=recorder, fullgraph=True)
    run(x).square().sum().backward()
    ours.zero_grad()
    with count_collectives(recorder, runs=1) as comms:
        run(x).square().sum().backward()
    plain(x).square().sum().backward()
    assert len(recorder) == 1 and collectives_in(recorder) == 8, (
        "4 gathers there, 4 reductions back"
    )
    assert comms.calls == {"all_gather": 4, "reduce_scatter": 4}
    for shard, weight in zip(ours.shards.values(), plain.parameters(), strict=True):
        assert torch.equal(shard.grad.view(weight.shape), weight.grad)


def test_buffers_and_frozen_weights_are_refused(one_rank):
    frozen = nn.Linear(2, 2)
    frozen.bias.requires_grad_(False)
    for module in (nn.BatchNorm1d(2), frozen):
        with pytest.raises(ValueError, match="without buffers"):
            Zero3InGraph(module)


@pytest.mark.parametrize("excluded", [True, False])
def test_excluded_hooks_still_run_and_are_not_compiled(excluded):
    forget()
    model, recorder, x = Net(), GraphRecorder(), torch.ones(1, 64)
    model.block.register_forward_hook(lambda part, inputs, output: output.sin())
    if excluded:
        exclude_hooks(model)
    goal = model(x)
    assert torch.equal(torch.compile(model, backend=recorder)(x), goal)
    ops = [op for index in range(len(recorder)) for op in recorder.ops(index)]
    assert ("sin" in ops) != excluded
    assert ops.count("linear") == 3
