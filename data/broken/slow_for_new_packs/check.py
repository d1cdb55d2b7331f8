"""Does step(lengths) run one captured graph for packs of any number of documents?"""

import torch

from helpers.exercises import load_program
from helpers.lessons.first_call import recorded


def check(program_source: str) -> None:
    """Raise AssertionError unless new packs run a graph that is there, and attend as before."""
    with recorded() as recorder:
        program = load_program(program_source)
        step = getattr(program, "step", None)
        tensors = [getattr(program, name, None) for name in ("query", "key", "value")]
        assert callable(step), "keep the name `step`"
        assert all(isinstance(t, torch.Tensor) for t in tensors), "keep query, key and value"
        for lengths in ([64], [40, 24], [30, 34]):
            step(lengths)
        graphs = len(recorder)
        for documents in (3, 4, 9):
            lengths = [64 // documents] * (documents - 1)
            lengths.append(64 - sum(lengths))
            calls = recorder.calls
            result = step(lengths)
            assert recorder.calls > calls, f"a pack of {documents} documents ran no captured graph"
            assert len(recorder) == graphs, f"a pack of {documents} documents is captured anew"
            parts = zip(*(tensor.split(lengths) for tensor in tensors), strict=True)
            goal = torch.cat([(q @ k.T / 4).softmax(-1) @ v for q, k, v in parts])
            assert torch.allclose(result, goal, atol=1e-5), f"wrong for {documents} documents"
    ops = [op for i in range(len(recorder)) for op in recorder.ops(i)]
    assert "softmax" in ops, "the attention is not in a captured graph"
