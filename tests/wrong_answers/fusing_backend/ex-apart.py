def apart(x):
    """A transposed *input* is one more load of the same loop: one kernel."""
    return x.exp() + x.t()
