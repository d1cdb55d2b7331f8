import subprocess
import sys
import textwrap

import pytest
import torch

from helpers import BookError, GraphRecorder, count_collectives
from helpers.counting import Measurement


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_recorder_counts_graphs_and_calls(backend):
    rec = GraphRecorder(backend)
    f = torch.compile(lambda x: x.sin() + 1, backend=rec)
    assert (len(rec), rec.calls) == (0, 0)  # compile itself compiles nothing
    f(torch.ones(2)), f(torch.ones(2))
    assert (len(rec), rec.calls) == (1, 2)
    f(torch.ones(2, dtype=torch.float64))
    assert (len(rec), rec.calls) == (2, 3)
    assert rec.ops(0) == ["sin", "add"]
    assert torch.equal(f(torch.ones(2)), torch.ones(2).sin() + 1)


def test_recorded_graph_is_what_dynamo_captured_even_if_the_backend_edits_it(monkeypatch):
    def editor(graph, example_inputs):
        for node in graph.graph.nodes:
            if node.op == "call_method":
                node.target = "cos"
        graph.recompile()
        return graph.forward

    monkeypatch.setattr("helpers.compat.lookup_backend", lambda name: editor)
    rec = GraphRecorder("editor")
    f = torch.compile(lambda x: x.sin(), backend=rec)
    assert torch.equal(f(torch.ones(2)), torch.ones(2).cos())
    assert rec.ops(0) == ["sin"]


def test_recorder_sees_a_training_step_with_gradients():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 3)

        def forward(self, x):
            x = self.linear(x)
            torch._dynamo.graph_break()
            return x.relu()

    rec = GraphRecorder("aot_eager")
    net = Net()
    torch.compile(net, backend=rec)(torch.ones(2, 3)).sum().backward()
    assert (len(rec), rec.calls) == (2, 2)
    assert net.linear.weight.grad is not None


def test_unknown_backend():
    with pytest.raises(BookError, match="no backend 'indcutor'"):
        GraphRecorder("indcutor")


class Watch(Measurement):
    seen = 0

    def see(self, func, inputs, result):
        self.seen += 1


def test_compiled_code_stays_compiled_inside_a_measurement():
    rec = GraphRecorder()
    f = torch.compile(lambda x: x.sin() + 1, backend=rec)
    with Watch(rec, runs=2) as watch:
        f(torch.ones(2)), f(torch.ones(2))
    assert (len(rec), rec.calls) == (1, 2)
    assert watch.seen == 6  # ones, sin, add, twice; nothing of the compilation


def test_a_measurement_that_would_run_eager_is_an_error(monkeypatch):
    # The trap as torch sets it: a mode that does not ignore compile internals.
    monkeypatch.setattr(Measurement, "ignore_compile_internals", classmethod(lambda cls: False))
    rec = GraphRecorder()
    f = torch.compile(lambda x: x.sin(), backend=rec)
    message = "ran 0 times inside this measurement, not 1"
    with pytest.raises(BookError, match=message), Watch(rec, runs=1):
        f(torch.ones(2))


def test_recorder_and_runs_go_together():
    with pytest.raises(BookError, match="Pass both"):
        count_collectives(GraphRecorder())


def test_error_inside_a_measurement_is_not_hidden_by_the_count():
    with pytest.raises(ZeroDivisionError), Watch(GraphRecorder(), runs=1):
        _ = 1 / 0


RANK = """
import torch, torch.distributed as dist, torch.distributed._functional_collectives as fc
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh
from torch.nn.parallel import DistributedDataParallel as DDP
from helpers import BookError, GraphRecorder, count_collectives

dist.init_process_group("gloo")
rank, x = dist.get_rank(), torch.ones(4)

def counts(work, **expect):
    with count_collectives(**expect) as comms:
        work()
    return {kind: (n, comms.bytes[kind]) for kind, n in comms.calls.items()}, comms

def bare():
    dist.all_reduce(x); dist.all_reduce(x, async_op=True).wait(); dist.broadcast(x, 0)
    dist.all_gather([torch.empty(4), torch.empty(4)], x)
    dist.all_gather_into_tensor(torch.empty(8), x)
    dist.reduce_scatter_tensor(torch.empty(2), x); dist.barrier()
    dist.all_to_all_single(torch.empty(4), x); dist.reduce(x, 0)
    dist.send(x, 1) if rank == 0 else dist.recv(x, 0)

expected = {"all_reduce": (2, 32), "broadcast": (1, 16), "all_gather": (2, 64),
            "reduce_scatter": (1, 16), "barrier": (1, 0), "all_to_all": (1, 16), "reduce": (1, 16),
            "send" if rank == 0 else "recv": (1, 16)}
assert counts(bare)[0] == expected, counts(bare)

def functional():
    group = dist.group.WORLD
    for y in (fc.all_reduce(x, "sum", group), fc.all_gather_tensor(x, 0, group),
              fc.reduce_scatter_tensor(x, "sum", 0, group), fc.broadcast(x, 0, group),
              *fc.all_reduce_coalesced([x, x], "sum", group)):
        y + 1

assert counts(functional)[0] == {"all_reduce": (2, 48), "all_gather": (1, 32),
                                 "reduce_scatter": (1, 16), "broadcast": (1, 16)}

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
    def forward(self, x):
        return self.b(self.a(x))

# The C++ reducer of DDP, eager and around compiled code: one bucket of 144 floats a step.
ddp = DDP(Net())
ddp(torch.ones(2, 8)).sum().backward()
ddp(torch.ones(2, 8)).sum().backward()  # the second step rebuilds the buckets, with 2 broadcasts
step = lambda model: model(torch.ones(2, 8)).sum().backward()
assert counts(lambda: step(ddp))[0] == {"all_reduce": (1, 576)}
rec = GraphRecorder("aot_eager")
compiled = torch.compile(DDP(Net()), backend=rec)
assert counts(lambda: step(compiled), recorder=rec, runs=1)[0] == {"all_reduce": (1, 576)}

# FSDP2: a gather for each layer forward and backward, and a reduce-scatter for each backward.
mesh, net = init_device_mesh("cpu", (2,)), Net()
fully_shard(net.a, mesh=mesh), fully_shard(net.b, mesh=mesh), fully_shard(net, mesh=mesh)
assert counts(lambda: step(net))[0] == {"all_gather": (4, 4 * 288), "reduce_scatter": (2, 2 * 288)}

# DTensor issues functional collectives from inside its own dispatch.
shard = distribute_tensor(torch.ones(4, 4), mesh, [Shard(0)])
found, comms = counts(lambda: shard.softmax(0))
assert found == {"all_gather": (1, 64)} and comms.ops == {"_c10d_functional.all_gather_into_tensor": 1}

def in_place(x):
    dist.all_reduce(x)
    return x + 1

for backend in ("eager", "inductor"):
    torch._dynamo.reset()
    rec = GraphRecorder(backend)
    f = torch.compile(in_place, backend=rec, fullgraph=True)
    found, comms = counts(lambda: (f(torch.ones(4)), f(torch.ones(4))), recorder=rec, runs=2)
    assert found == {"all_reduce": (2, 32)} and len(rec) == 1, (backend, found)
    assert [op.rstrip("_") for op in comms.ops] == ["_c10d_functional.all_reduce"], comms.ops
if rank == 0:
    print("counted", repr(comms))
dist.destroy_process_group()
"""


def test_collectives_of_two_ranks_eager_and_compiled(tmp_path):
    script = tmp_path / "count.py"
    script.write_text(textwrap.dedent(RANK))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    run = subprocess.run([*command, script], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr[-3000:]
    assert "counted all_reduce: 2 calls, 32 bytes" in run.stdout
