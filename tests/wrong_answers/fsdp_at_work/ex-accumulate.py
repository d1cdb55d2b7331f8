def accumulation(sizes, micro, world_size):
    """As if holding back saved the gathers too."""
    root, total = sizes[0], sum(sizes)
    each = 2 * total - root + total
    return micro * each, each, total - total // world_size
