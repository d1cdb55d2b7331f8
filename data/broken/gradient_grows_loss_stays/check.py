"""Does the sharded model learn the one batch it is shown?"""

from torch.distributed.tensor import DTensor

from helpers.exercises import load_program


def check(program_source: str) -> None:
    """Raise AssertionError unless the parameters are sharded, and the optimizer moves them."""
    program = load_program(program_source)
    for name in ("model", "optimizer", "losses"):
        assert hasattr(program, name), f"keep the name `{name}`"
    parameters = list(program.model.parameters())
    assert all(isinstance(p, DTensor) for p in parameters), "the model must stay sharded"
    first, *_, last = program.losses
    assert last < first - 0.5, f"the loss went from {first:.4f} to {last:.4f}"
    held = {id(p) for group in program.optimizer.param_groups for p in group["params"]}
    assert held == {id(p) for p in parameters}, "the optimizer holds other tensors than the model"
