def least_bandwidth(nbytes, latency, forward, backward):
    """Forgets that the reduction takes the same link."""
    return max(nbytes / (forward - latency), nbytes / (backward - latency))
