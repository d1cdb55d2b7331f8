def lengths(batches):
    """As if the average divided by the ranks that still have data."""
    return [1.0] * max(batches)
