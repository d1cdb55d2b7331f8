def pauses(lengths):
    """One pause for each size that some rank has not met: as if no size became a symbol."""
    return max(len(set(sizes)) for sizes in lengths)
