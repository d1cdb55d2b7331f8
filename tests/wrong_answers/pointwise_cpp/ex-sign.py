def sign():
    """Right but for 0 and NaN."""
    return "{0} / fabsf({0})"
