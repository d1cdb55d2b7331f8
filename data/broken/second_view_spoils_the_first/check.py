"""Is the gradient that of the values which the forward passes saw?"""

from helpers.exercises import run_on_ranks

PROBE = """
net = model.module


def gradient_of_step(context):
    net.size = torch.ones(())
    with context:
        step()
    return net.linear.weight.grad.clone()


copies = torch.autograd.graph.saved_tensors_hooks(torch.clone, lambda saved: saved)
found = gradient_of_step(torch.enable_grad())
true = gradient_of_step(copies)  # whatever is saved, is saved as a copy that nobody can overwrite
saw = views.shape
size = net.size.item()
"""


def check(program_source: str) -> None:
    """Raise AssertionError unless copying what autograd saves changes no gradient."""
    pull = ("found", "true", "saw", "size")
    pulled = run_on_ranks(program_source + PROBE, pull=pull, timeout=120)
    assert tuple(pulled["saw"][0]) == (2, 8, 4), "keep the two views of eight images"
    assert pulled["size"][0] != 1, "the running size must still run"
    assert pulled["found"][0].equal(pulled["found"][1]), "the ranks must average their gradients"
    error = (pulled["found"][0] - pulled["true"][0]).norm() / pulled["true"][0].norm()
    assert error < 1e-5, f"the averaged gradient is off by {error:.0%}"
