def same_bits(x):
    """Moves the note behind everything, so nothing is split any more."""
    h = x.tanh() + x.sin()
    level = h.mean()
    result = (x.cos() * h).sum()
    note(level)  # noqa: F821 (of the chapter)
    return result
