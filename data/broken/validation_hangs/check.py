"""Does validation end, with the score that the model has in evaluation?"""

from helpers.exercises import run_on_ranks

PROBE = """
training = model.training and net.training
score = globals().get("score")
trained = [p.grad is not None for p in net.parameters()]
kept = [type(part).__name__ for part in net]
averaged = [net[0].weight.grad.clone() for _ in range(world_size)]
dist.all_gather(averaged, net[0].weight.grad)
equal = averaged[0].equal(averaged[1])
with torch.no_grad():
    right = net.eval()(torch.ones(8, 4)).square().mean().item()
"""


def check(program_source: str) -> None:
    """Raise AssertionError unless the ranks end in time and rank 0 has the right score."""
    pull = ("score", "right", "kept", "equal", "trained", "training")
    pulled = run_on_ranks(program_source + PROBE, pull=pull, timeout=120)
    assert pulled["kept"][0] == ["Linear", "BatchNorm1d", "Linear"], "the model must stay"
    assert all(pulled["equal"]) and all(pulled["trained"][0]), "it must train on both ranks' data"
    score, right = pulled["score"][0], pulled["right"][0]
    assert score is not None, "rank 0 must have a `score`"
    assert abs(score - right) < 1e-6, f"the score is {score}, in evaluation it is {right}"
    assert pulled["training"] == [True, True], "the next epoch would run in evaluation mode"
