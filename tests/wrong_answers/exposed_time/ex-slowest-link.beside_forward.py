def least_bandwidth(nbytes, latency, forward, backward):
    """Asks for more than it must: all three messages beside the forward pass."""
    return 3 * nbytes / (forward - 3 * latency)
