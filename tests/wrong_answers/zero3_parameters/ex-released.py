def released(blocks, size, reuse):
    """Counts the later blocks once, not forward and backward."""
    return {i for i in range(blocks) if (blocks - 1 - i) * size > reuse}
