def first_apart(steps, equal_after):
    """Right, one step after the other."""
    return next((step for step in range(steps) if not equal_after(step)), None)
