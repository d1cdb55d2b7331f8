import torch


class Hole(torch.nn.Module):
    """Depends on the batch, and is symbolic for every size: both compilers are right."""

    def forward(self, x):
        return x * x.shape[0]
