def slower(oversubscription, hosts_per_leaf):
    """As if every edge of the ring crossed the spine."""
    return float(oversubscription)
