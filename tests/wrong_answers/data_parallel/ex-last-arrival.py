def last_arrival(ready, nbytes, limit, delay, bandwidth):
    """As if every bucket had a wire of its own."""
    ends, filled = [0], 0
    for index, (second, size) in enumerate(zip(ready, nbytes, strict=True)):
        filled += size
        if filled >= limit or index == len(ready) - 1:
            ends.append(second + delay + filled / bandwidth)
            filled = 0
    return max(ends)
