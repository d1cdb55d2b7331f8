def same_bits(x):
    """Adds in another order, and x is still read on both sides."""
    h = x.sin() + x.tanh()
    level = h.mean()
    note(level)  # noqa: F821 (of the chapter)
    return (x.cos() * h).sum()
