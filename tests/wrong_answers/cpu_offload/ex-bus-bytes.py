def bus_bytes(sizes, world_size, micro, kept, held):
    """As if holding gradients back saved the copies up."""
    once = 4 * sum(sizes) // world_size
    return (once if kept else 2 * once) * (1 if held else micro), once * (1 if held else micro)
