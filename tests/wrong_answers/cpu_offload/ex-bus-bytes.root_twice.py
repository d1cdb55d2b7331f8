def bus_bytes(sizes, world_size, micro, kept, held):
    """Gathers the root twice, like a block."""
    once = 4 * sum(sizes) // world_size
    return micro * (once if kept else 2 * once), once * (1 if held else micro)
