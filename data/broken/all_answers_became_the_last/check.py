"""Are the answers that the program keeps still those of its requests, in memory of their own?"""

import torch

from helpers.exercises import load_program


@torch.no_grad()
def check(program_source: str) -> None:
    """Raise AssertionError unless `answers` are right at the end, and `served` still replays."""
    program = load_program(program_source)
    for name in ("model", "served", "requests", "answers"):
        assert hasattr(program, name), f"keep the name `{name}`"
    assert len(program.answers) == len(program.requests), "keep an answer for each request"
    for number, (request, answer) in enumerate(zip(program.requests, program.answers, strict=True)):
        assert torch.equal(answer, program.model(request)), (
            f"answer {number}, as it is kept, is not the model's answer to request {number}"
        )
    first, second = (program.served(request).data_ptr() for request in program.requests[:2])
    assert first == second, "`served` must stay compiled with the backend static_replay"
