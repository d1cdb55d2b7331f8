"""Does the model that the program leaves behind look only backwards, and at all of it?"""

import torch

from helpers.exercises import load_program


def check(program_source: str) -> None:
    """Raise AssertionError unless the program's `model` is causal and sees its whole past."""
    program = load_program(program_source)
    model = getattr(program, "model", None)
    assert model is not None, "keep the name `model` for what is trained"
    seen = influence(model.double().eval(), time=program.config.context)
    future = seen.triu(diagonal=1).nonzero()
    assert not len(future), (
        f"the prediction at position {future[0][0]} still changes when byte {future[0][1]} does"
    )
    blind = (~seen).tril().nonzero()
    assert not len(blind), (
        f"the prediction at position {blind[0][0]} no longer depends on byte {blind[0][1]}"
    )


@torch.no_grad()
def influence(model: torch.nn.Module, time: int) -> torch.Tensor:
    """bool (time, time): does the prediction at row i move when byte j of the input does?

    One forward pass: row 0 of the batch is the text, row 1 + j the text with byte j changed.
    In float64, where even a byte that gets hardly any attention moves some digit.
    """
    device = next(model.parameters()).device
    text = torch.arange(time, device=device) % 64 + 32  # bytes that the training text is made of
    rows = text.repeat(time + 1, 1)
    rows[torch.arange(time) + 1, torch.arange(time)] ^= 1
    logits = model(rows)
    return (logits[1:] != logits[0]).any(dim=2).T.cpu()
