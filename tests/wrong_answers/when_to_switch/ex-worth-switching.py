import numpy as np


def ring_pays_from(p, alpha, beta):
    """Forgets that each step of the ring carries a p-th of the tensor."""
    return alpha * (2 * (p - 1) - 2 * np.log2(p)) / beta
