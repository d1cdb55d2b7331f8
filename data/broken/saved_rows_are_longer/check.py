"""Are the rows of length one where they are kept, in a job that is still ZeRO-3 and learns?"""

from helpers.exercises import run_on_ranks

PROBE = """
with deepspeed.zero.GatheredParameters(model[0].weight):
    found = model[0].weight.detach().clone()
at_rest, last, stage = model[0].weight.numel(), loss.item(), engine.zero_optimization_stage()
for group in engine.optimizer.param_groups:
    group["lr"] = 0.0  # a step that moves nothing still writes the optimizer's own copy
engine.backward(engine(x).square().mean())
engine.step()
with deepspeed.zero.GatheredParameters(model[0].weight):
    later = model[0].weight.detach().clone()
"""


def check(program_source: str) -> None:
    """Raise AssertionError unless the weight that would be saved has rows of length one."""
    names = ("found", "later", "at_rest", "last", "stage")
    found, later, at_rest, last, stage = (
        values[0]
        for values in run_on_ranks(
            program_source + PROBE, nproc=1, pull=names, timeout=120
        ).values()
    )
    assert stage == 3 and at_rest == 0, "the parameters must stay in pieces between two steps"
    assert found.shape == (8, 16), "the first layer must stay 16 by 8"
    assert last < 0.2, f"it no longer learns: the loss ends at {last:.3f}"
    for when, weight in (("", found), (", once more after a step with lr=0,", later)):
        longest = (weight.norm(dim=1) - 1).abs().max().item()
        assert longest < 1e-3, f"a row of the saved weight{when} is off length one by {longest:.2f}"
