def opened(rows, before, after):
    """The ratio of the rank counts, rounded up: borders that do not meet are forgotten."""
    return [-(-before // after)] * after
