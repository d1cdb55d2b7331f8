def nest(sizes, nbytes, cards):
    """The most bytes innermost, whether it fits or not."""
    return sorted(sizes, key=nbytes.get)
