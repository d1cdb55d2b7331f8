def largest_batch(peak_of, budget):
    """A line through the two smallest batches, of which the first has its peak elsewhere."""
    one, two = peak_of(1), peak_of(2)
    each = two - one
    return (budget - (one - each)) // each
