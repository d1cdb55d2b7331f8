import torch


def safe_root(x):
    """Clamps what goes into the root: the slope is finite, and not the one that was asked for."""
    return torch.where(x > 0, x.clamp(min=1e-12).sqrt(), x)
