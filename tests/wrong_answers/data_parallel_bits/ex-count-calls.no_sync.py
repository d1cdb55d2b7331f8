def all_reduces(steps, micro_batches, buckets, find_unused):
    """As if every micro-batch were sent."""
    if find_unused:
        return steps * micro_batches * (buckets + 1)
    return min(steps, 1) + (steps * micro_batches - min(steps, 1)) * buckets
