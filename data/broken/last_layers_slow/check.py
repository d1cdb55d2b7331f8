"""Do all layers of a stack run from graphs, of which deeper stacks need no more?"""

import torch

from helpers.exercises import load_program
from helpers.lessons.first_call import recorded


def check(program_source: str) -> None:
    """Raise AssertionError unless `step` runs all blocks compiled, from few graphs, as before."""
    limit = torch._dynamo.config.recompile_limit
    try:
        with recorded() as recorder:
            program = load_program(program_source)
            step, blocks = getattr(program, "step", None), getattr(program, "blocks", [])
            assert callable(step) and len(blocks) == 12, "keep `step` and 12 `blocks`"
            x = torch.linspace(-1, 1, 8 * 32).reshape(8, 32)
            step(x)
            graphs, calls = len(recorder), recorder.calls
            y = step(x)
    finally:
        torch._dynamo.config.recompile_limit = limit
    ran = recorder.calls - calls
    linear = max((recorder.ops(i).count("linear") for i in range(graphs)), default=0)
    assert ran * linear >= 24, f"{ran} runs of captured graphs in a step of 12 blocks"
    assert graphs <= 4, f"{graphs} graphs for 12 blocks alike: the compile time grows with depth"
    for index, block in enumerate(blocks):
        x = x + block.down(torch.relu(block.up(x))) / (2 + 2 * index) ** 0.5
    assert torch.allclose(x, y, rtol=1e-4, atol=1e-5), "step no longer computes the same"
