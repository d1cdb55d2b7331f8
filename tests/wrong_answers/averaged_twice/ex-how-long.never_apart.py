def multiple(calls, ranks):
    """The right number, also where each rank still holds its own gradient."""
    return Fraction(ranks) ** (calls.count("sum") - calls.count("divide"))  # noqa: F821
