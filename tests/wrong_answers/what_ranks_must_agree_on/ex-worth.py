def worth(ranks, rho):
    """As if each rank lost a share of its own."""
    return 1 + (ranks - 1) * (1 - rho)
