import torch


def agrees(function, backend, make_inputs):
    """Results only, and nearly."""
    return torch.allclose(function(*make_inputs()), fresh(function, backend)(*make_inputs()))  # noqa: F821
