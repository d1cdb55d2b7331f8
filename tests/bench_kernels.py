"""Our kernels beside eager, aot_eager and Inductor, paired, on one thread and on all. `make bench`.

The chain also has a bar over eager. Compile time is from torch.compile to the first result, with
empty caches, after Inductor has paid its imports and probes. About 5 minutes on 2 idle cores.
"""

import time

import pytest
import torch
from torch.nn import functional as F

from helpers import paired
from helpers.devices import cores
from helpers.lessons.compiled_kernels import CppTarget
from helpers.lessons.fusing_backend import FusedBackend
from helpers.lessons.small_gpt import Block, Config

COUNT = 1 << 24
THREADS = sorted({1, cores()})


def chain(x, b):
    h = x + b
    return (h * torch.sigmoid(1.702 * h) + x) * 0.5


def cases():
    """name: (function, inputs, least of eager / ours, least of Inductor / ours)"""
    x, row = torch.randn(COUNT // 1024, 1024), torch.randn(1024)
    block, tokens = Block(Config()).eval(), torch.randn(16, 128, 128)
    return {
        "chain of six, 16 M": (chain, (x, row), 3.0, 1.0),
        "softmax, 16384 x 1024": (lambda x: F.softmax(x, -1), (x,), None, 0.8),
        "layer norm, 16384 x 1024": (
            lambda x, w, b: F.layer_norm(x, (1024,), w, b),
            (x, row, row),
            None,
            0.8,
        ),
        "block of the small GPT": (lambda x: block(x), (tokens,), None, None),
    }


def first_call(function, inputs, backend):
    start = time.perf_counter()
    compiled = torch.compile(lambda *args: function(*args), backend=backend)
    compiled(*inputs)
    return compiled, time.perf_counter() - start


@pytest.mark.parametrize("name", cases())
@pytest.mark.parametrize("threads", THREADS)
def test_kernels(name, threads, tmp_path, capsys):
    """Nothing of a measured case runs in ATen but matrix products, attention and views."""
    function, inputs, over_eager, over_inductor = cases()[name]
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    torch._dynamo.reset()
    backend = FusedBackend(CppTarget(tmp_path))
    with torch.no_grad(), torch._inductor.utils.fresh_cache():
        first_call(lambda x: x + 1, (torch.ones(3),), "inductor")
        inductor, their_seconds = first_call(function, inputs, "inductor")
        aot_eager, _ = first_call(function, inputs, "aot_eager")
        ours, our_seconds = first_call(function, inputs, backend)
        assert not backend.fallen
        rounds = {
            "eager": paired(lambda: function(*inputs), lambda: ours(*inputs), rounds=9),
            "aot_eager": paired(lambda: aot_eager(*inputs), lambda: ours(*inputs), rounds=5),
            "Inductor": paired(lambda: inductor(*inputs), lambda: ours(*inputs), rounds=21),
        }
    torch.set_num_threads(before)
    compiling = our_seconds / their_seconds
    with capsys.disabled():
        print(f"\n{name}, {threads} threads: compiled in {compiling:.2f} of Inductor's time")
        for other, result in rounds.items():
            print(f"  {other:9} / ours: {result}")
    assert compiling < 1 / 3
    assert over_eager is None or rounds["eager"].ratio >= over_eager
    assert over_inductor is None or rounds["Inductor"].ratio >= over_inductor
