def programs(shape, reduced):
    """Blocks of 1024 in all cases, as if a row were cut too."""
    elements = 1
    for n in shape:
        elements *= n
    return -(-elements // 1024)
