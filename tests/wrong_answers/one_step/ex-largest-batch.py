def largest_batch(peak_of, budget):
    """As if nothing stayed: the whole peak divided by windows."""
    return 2 * budget // peak_of(2)
