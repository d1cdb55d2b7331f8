"""Is there one saved copy of the whole model, and do both ranks go on?"""

from helpers.exercises import run_on_ranks

PROBE = """
whole = {name: weight.full_tensor() for name, weight in model.named_parameters()}
right = loaded and [name in loaded and torch.equal(loaded[name], whole[name]) for name in whole]
sharded = model.token.weight.to_local().shape != model.token.weight.shape
"""


def check(program_source: str) -> None:
    """Raise AssertionError unless rank 0, and only rank 0, has saved the whole model."""
    pulled = run_on_ranks(program_source + PROBE, pull=("right", "sharded"), timeout=110)
    alone, other = pulled["right"]
    assert alone and all(alone), f"rank 0 saved {sum(alone or [])} whole weights that are right"
    assert not other, "one copy is enough"
    assert all(pulled["sharded"]), "the model must stay sharded"
