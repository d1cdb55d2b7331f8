def ratio(reads, length):
    """As if each operation read one tensor and wrote one."""
    return length
