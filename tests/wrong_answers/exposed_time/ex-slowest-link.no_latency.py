def least_bandwidth(nbytes, latency, forward, backward):
    """Forgets the latency."""
    return max(nbytes / forward, 2 * nbytes / backward)
