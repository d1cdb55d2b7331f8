def largest_batch(peak_of, budget):
    """Right, and asks far too often."""
    size = 1
    while peak_of(size + 1) <= budget:
        size += 1
    return size
