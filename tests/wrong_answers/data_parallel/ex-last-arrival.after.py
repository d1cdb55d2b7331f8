def last_arrival(ready, nbytes, limit, delay, bandwidth):
    """The loop after backward(): everything is ready, then buckets go one after the other."""
    now, filled = ready[-1], 0
    for index, size in enumerate(nbytes):
        filled += size
        if filled >= limit or index == len(nbytes) - 1:
            now += delay + filled / bandwidth
            filled = 0
    return now
