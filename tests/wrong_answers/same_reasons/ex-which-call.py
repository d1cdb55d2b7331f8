def captures(values, place):
    """Every place is taken for an argument."""
    return [i == 0 or (set(values[:i]) == {values[0]} != {v}) for i, v in enumerate(values)]
