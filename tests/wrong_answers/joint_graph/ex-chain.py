def kept_by_chain(names):
    """One for each operator that is not linear: as if no two kept the same tensor."""
    return sum(name != "neg" for name in names)
