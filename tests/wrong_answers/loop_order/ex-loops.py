import torch


def operands():
    """Three dimensions, but the broadcast ones lie side by side, and become one."""
    return torch.randn(4, 5, 6), torch.randn(6)
