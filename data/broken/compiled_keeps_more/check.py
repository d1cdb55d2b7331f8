"""Does `compiled` keep no more than the lean layer promises, compiled, with eager's gradients?"""

import torch

from helpers import GraphRecorder, StorageTracker
from helpers.exercises import load_program

LEAN = 2 * 256 * 64 * 4 + 8  # an input of each layer, and scalars


def check(program_source: str) -> None:
    """Raise AssertionError unless the compiled step of the program keeps as little as eager."""
    recorder = GraphRecorder("aot_eager")
    torch._dynamo.reset()
    with torch.compiler.set_stance("default", force_backend=recorder):
        program = load_program(program_source)
        model, compiled, batch = (getattr(program, n, None) for n in ("model", "compiled", "batch"))
        assert None not in (model, compiled, batch), "keep the names model, compiled and batch"
        compiled(batch)
        tracker = StorageTracker(recorder, runs=1)
        with tracker:
            tracker.tag("inputs", [batch, *model.parameters()])
            loss = compiled(batch)
            kept = tracker.current_by_kind.get("activations", 0)
            grads = torch.autograd.grad(loss, list(model.parameters()))
    nodes = [n for g in recorder.graphs for m in g.modules() if hasattr(m, "graph") for n in m.graph.nodes]
    products = sum("matmul" in str(n.target) for n in nodes if n.op.startswith("call_"))
    assert products >= 4, f"{products} of the model's 4 matrix products are in captured graphs"
    assert kept <= LEAN, f"the compiled step keeps {kept:,} bytes, eager's lean one {LEAN:,}"
    x = batch
    for up, down in zip(model.ups, model.downs, strict=True):
        x = x + (x @ up).relu() @ down
    goal = torch.autograd.grad(x.square().mean(), list(model.parameters()))
    close = [torch.allclose(a, b, rtol=1e-4, atol=1e-6) for a, b in zip(grads, goal, strict=True)]
    assert all(close), "the gradients are no longer the model's"
