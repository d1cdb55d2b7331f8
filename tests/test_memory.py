import pytest
import torch
import torch.distributed as dist
from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker
from torch.distributed._tools.mem_tracker import MemTracker
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import init_device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore

from helpers import BookError, GraphRecorder, StorageTracker

KB = 1024  # bytes of the tensors below: 256 floats


@pytest.fixture
def fake_ranks():
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    yield init_device_mesh("cpu", (2,))
    dist.destroy_process_group()


def model():
    torch.manual_seed(0)
    blocks = [
        torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 32))
    ]
    return torch.nn.Sequential(torch.nn.Embedding(50, 32), *blocks, torch.nn.Linear(32, 50))


def train(net, optimizer, x, between=lambda: None):
    for _ in range(2):
        loss = torch.nn.functional.cross_entropy(net(x), x)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        between()
    del loss


def peak_of(tracker):
    return sum(device["Total"] for device in tracker.get_tracker_snapshot("peak").values())


def test_peak_equals_pytorchs_memory_tracker_to_the_byte():
    x = torch.arange(40)
    net = model()
    optimizer = torch.optim.AdamW(net.parameters(), foreach=False)
    reference = MemTracker()
    reference.track_external(net, optimizer, x)
    with reference:
        train(net, optimizer, x, reference.reset_mod_stats)

    net = model()
    optimizer = torch.optim.AdamW(net.parameters(), foreach=False)
    tracker = StorageTracker()
    tracker.tag("parameters", net.parameters())
    tracker.tag("inputs", x)
    with tracker:
        train(net, optimizer, x)
        tracker.tag("optimizer state", optimizer.state.values())
    assert tracker.peak == peak_of(reference) > 0

    params = sum(p.nbytes for p in net.parameters())
    steps = 4 * len(list(net.parameters()))
    expected = {"inputs": x.nbytes, "optimizer state": 2 * params + steps, "parameters": params}
    assert tracker.current_by_kind == expected
    assert tracker.current == sum(expected.values()) == tracker.timeline[-1][1]


@pytest.mark.parametrize("reshard", [True, False])
def test_peak_equals_pytorchs_fsdp_tracker_to_the_byte(fake_ranks, reshard):
    def sharded():
        net = model()
        for part in net:
            fully_shard(part, mesh=fake_ranks, reshard_after_forward=reshard)
        fully_shard(net, mesh=fake_ranks, reshard_after_forward=False)
        return net, torch.optim.AdamW(net.parameters(), foreach=False)

    x = torch.arange(40)
    net, optimizer = sharded()
    reference = FSDPMemTracker(net, optimizer)
    reference.track_inputs((x,))
    with reference:
        train(net, optimizer, x, reference.reset_mod_stats)

    net, optimizer = sharded()
    tracker = StorageTracker()
    tracker.tag("parameters", net.parameters())
    tracker.tag("inputs", [x])
    with tracker:
        train(net, optimizer, x)
    assert tracker.peak == peak_of(reference) > 0


def test_views_are_free_and_frees_are_seen():
    with StorageTracker() as tracker:
        a = torch.zeros(256)
        _ = a.view(16, 16).t(), a[3:]
        assert tracker.current == KB
        b = a + 1
        assert tracker.current == 2 * KB
        a.untyped_storage().resize_(0)  # passes no dispatcher
        assert tracker.current == KB
        del b
        assert tracker.current == 0
    assert tracker.peak == 2 * KB
    assert [size for _, size in tracker.timeline] == [KB, 2 * KB, KB, 0]
    assert [step for step, _ in tracker.timeline] == sorted(step for step, _ in tracker.timeline)


def test_storage_that_grows_in_place():
    with StorageTracker() as tracker:
        a = torch.zeros(256)
        a.untyped_storage().resize_(4 * KB)
        a.set_(a.untyped_storage(), 0, (1024,))
        assert (tracker.current, tracker.peak) == (4 * KB, 4 * KB)


def test_a_later_tag_renames_what_stood_at_the_peak():
    weight = torch.zeros(256, requires_grad=True)
    tracker = StorageTracker()
    tracker.tag("parameters", [weight])
    assert tracker.peak_by_kind == {"parameters": KB}
    with tracker:
        (weight * weight).sum().backward()
        tracker.tag("gradients", {"weight": weight.grad, "bias": None})
    assert tracker.current_by_kind == {"gradients": KB, "parameters": KB}
    assert tracker.peak_by_kind["gradients"] == KB
    assert sum(tracker.peak_by_kind.values()) == tracker.peak


def test_meta_and_fake_tensors_count_as_nothing():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with StorageTracker() as tracker:
        _ = torch.zeros(256, device="meta") + 1
        with FakeTensorMode():
            _ = torch.zeros(256) + 1
    assert tracker.peak == 0


def test_an_input_made_outside_counts_once_an_operation_reads_it():
    x = torch.zeros(256)
    with StorageTracker() as tracker:
        assert tracker.current == 0
        x.sum()
        assert tracker.current == KB


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled_code_stays_compiled_inside_the_tracker(backend):
    torch._dynamo.reset()
    rec = GraphRecorder(backend)
    f = torch.compile(lambda x: (x + 1) * 2, backend=rec, fullgraph=True)
    with StorageTracker(rec, runs=2) as tracker:  # the first call compiles inside
        y = f(torch.zeros(256))
        y = f(y)
    assert len(rec) == 1
    assert tracker.peak == 3 * KB  # input, sum and product; the compiler's tensors are not there
    assert tracker.current == KB


def test_tracker_says_so_when_compiled_code_did_not_run():
    message = "ran 0 times inside this measurement, not 1"
    with pytest.raises(BookError, match=message), StorageTracker(GraphRecorder(), runs=1):
        torch.zeros(256)


def test_a_module_is_not_tensors():
    with pytest.raises(BookError, match=r"model\.parameters\(\)"):
        StorageTracker().tag("parameters", torch.nn.Linear(2, 2))


def test_kinds_over_time_by_the_names_given_last():
    tracker = StorageTracker()
    with tracker:
        x = torch.ones(256)
        y = x + 1
        tracker.tag("late", y)
    del x
    assert tracker.timeline_by_kind[0] == (1, {"activations": KB})
    assert tracker.timeline_by_kind[1] == (2, {"activations": KB, "late": KB})
    assert [(step, sum(kinds.values())) for step, kinds in tracker.timeline_by_kind] == (
        tracker.timeline
    )


def test_a_storage_as_an_argument_is_no_list_of_bytes(monkeypatch):
    def read(storage):
        raise AssertionError("the tracker reads a storage byte by byte")

    monkeypatch.setattr(torch.UntypedStorage, "__iter__", read)
    with StorageTracker():
        torch.empty(0).set_(torch.ones(8).untyped_storage(), 0, (4,))
