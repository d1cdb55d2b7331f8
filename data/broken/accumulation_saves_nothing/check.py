"""Does backward() send each gradient once, and leave the mean over ranks and micro-batches?"""

from helpers.exercises import run_on_ranks

PROBE = """
model.zero_grad()
given = torch.randn(MICRO_BATCHES, 8, 64, generator=torch.Generator().manual_seed(10 + rank))
with count_collectives() as comms:
    backward(given)
sent = comms.bytes["all_reduce"]
nbytes = sum(p.nbytes for p in model.parameters())
gradients = [p.grad for p in model.parameters()]
alone = torch.autograd.grad(
    sum(model.module(x).square().mean() for x in given) / MICRO_BATCHES,
    list(model.module.parameters()),
)
"""


def check(program_source: str) -> None:
    """Raise AssertionError unless one call of `backward` sends the gradients exactly once."""
    pulled = run_on_ranks(program_source + PROBE, pull=("sent", "nbytes", "gradients", "alone"))
    means = [(a + b) / 2 for a, b in zip(*pulled["alone"], strict=True)]
    for rank, gradients in enumerate(pulled["gradients"]):
        right = all(g.allclose(mean, atol=1e-6) for g, mean in zip(gradients, means, strict=True))
        assert right, f"rank {rank} does not hold the mean over ranks and micro-batches"
    times = pulled["sent"][0] / pulled["nbytes"][0]
    assert times == 1, f"backward() sends each gradient {times:g} times"
