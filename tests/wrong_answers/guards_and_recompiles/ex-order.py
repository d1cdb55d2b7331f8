def tried(history, variants):
    """The order of capture is taken to stay, the last in front."""
    return sum(variants - needed for needed in history)
