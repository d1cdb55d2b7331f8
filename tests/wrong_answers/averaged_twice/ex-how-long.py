def multiple(calls, ranks):
    """As if an average only divided."""
    if not {"sum", "avg"} & set(calls):
        return None
    divided = calls.count("avg") + calls.count("divide")
    return Fraction(ranks) ** (calls.count("sum") - divided)  # noqa: F821
