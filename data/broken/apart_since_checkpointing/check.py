"""Do both ranks hold one model, trained on both ranks' data, and still recompute?"""

from helpers.exercises import run_on_ranks

PROBE = """
weights = [p.detach() for p in model.parameters()]
entered = []
model.module.layer.register_forward_pre_hook(lambda *parts: entered.append(1))
x = torch.randn(16, 8, generator=dice, requires_grad=True)
loss_now = model(x).square().mean()
forwards = len(entered)
loss_now.backward()
again = len(entered) - forwards
"""


def check(program_source: str) -> None:
    """Raise AssertionError unless the ranks hold equal weights, recompute, and saw own data."""
    pulled = run_on_ranks(program_source + PROBE, pull=("weights", "again", "x"), timeout=120)
    apart = max((a - b).abs().max().item() for a, b in zip(*pulled["weights"], strict=True))
    assert apart == 0, f"after 20 steps the ranks' weights differ by {apart:.2g}"
    assert min(pulled["again"]) > 0, "the layer must still be computed again in the backward pass"
    assert not pulled["x"][0].equal(pulled["x"][1]), "each rank must train on data of its own"
