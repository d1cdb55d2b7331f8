def four(x):
    """Three reductions, and two of them share a pass."""
    return (x - x.amax(1, keepdim=True)) / (x.sum(1, keepdim=True) + x.amin(1, keepdim=True))
