def bound(graph):
    """The fastest edge of each card, as if a ring did not need two."""
    cards = range(len(graph.gpus))
    return min(max(graph.bandwidth(a, b) for b in cards if b != a) for a in cards)
