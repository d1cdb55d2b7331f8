"""Are the norms those of the whole weights, on both ranks?"""

from helpers.exercises import run_on_ranks
from helpers.lessons.zero_stages import why_no_deepspeed

PROBE = """
true = {}
with deepspeed.zero.GatheredParameters(list(model.parameters())):
    true = {name: weight.detach().norm().item() for name, weight in model.named_parameters()}
"""


def check(program_source: str) -> None:
    """Raise AssertionError unless `norms` holds the norm of each whole weight after three steps."""
    assert not why_no_deepspeed(), why_no_deepspeed()
    pulled = run_on_ranks(program_source + PROBE, pull=("norms", "true", "losses"), timeout=180)
    for norms, true, losses in zip(*pulled.values(), strict=True):
        assert len(losses) == 3 and losses[-1] < losses[0], "it must train as before"
        missing = sorted(true.keys() - norms.keys())
        assert not missing, f"`norms` lacks {missing[0]}"
        wrong = [name for name in true if abs(norms[name] - true[name]) > 1e-5 * (1 + true[name])]
        assert not wrong, f"the norm of {wrong[0]} is {true[wrong[0]]:.3f}, not {norms[wrong[0]]:.3f}"
