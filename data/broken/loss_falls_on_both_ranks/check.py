"""Do both ranks hold one model with a head of seven classes, trained on both ranks' data?"""

from helpers.exercises import run_on_ranks

PROBE = """
import torch.distributed as dist

weights = [p.detach().flatten() for p in model.parameters()]
with torch.no_grad():
    classes = model.module(x).shape[1]
for parameter in model.parameters():
    parameter.grad = None
F.cross_entropy(model(x), x[:, :7].argmax(dim=1)).backward()
gradients = [p.grad.flatten() for p in model.parameters()]
alone = torch.autograd.grad(
    F.cross_entropy(model.module(x), x[:, :7].argmax(dim=1)), list(model.module.parameters())
)
alone = [gradient.flatten() for gradient in alone]
"""


def check(program_source: str) -> None:
    """Raise AssertionError unless the ranks agree on weights and averaged gradients."""
    pulled = run_on_ranks(
        program_source + PROBE, pull=("weights", "gradients", "alone", "classes", "loss")
    )
    assert set(pulled["classes"]) == {7}, "the new head must stay: seven classes"
    for what in ("weights", "gradients"):
        first, second = pulled[what]
        names = [i for i, (a, b) in enumerate(zip(first, second, strict=True)) if not a.equal(b)]
        assert not names, f"after training the ranks differ in the {what} of parameters {names}"
    differ = [not a.equal(b) for a, b in zip(*pulled["alone"], strict=True)]
    assert any(differ), "each rank must train on data of its own"
    assert max(loss.item() for loss in pulled["loss"]) < 1.6, "the model must still learn"
