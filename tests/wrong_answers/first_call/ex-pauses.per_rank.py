def pauses(lengths):
    """One for each rank whose sizes vary, as if no two ranks ever moved at the same step."""
    return 1 + sum(len(set(sizes)) > 1 for sizes in lengths)
