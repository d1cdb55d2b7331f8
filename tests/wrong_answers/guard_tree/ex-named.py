def named(names, history):
    """The order is taken to stay: short names first."""
    order = sorted(names, key=len)
    return [next((name for name in order if name in moved), None) for moved in history]
