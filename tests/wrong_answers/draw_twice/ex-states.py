def cheapest_way(draws, elements):
    """One state, from which everything can be drawn again."""
    return "one state"
