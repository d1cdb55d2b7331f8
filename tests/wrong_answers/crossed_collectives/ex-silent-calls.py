def ending(first, second, meant):
    """As if the ends were looked at first: the hang hides what was wrong before."""
    if len(first) != len(second):
        return "hang", min(len(first), len(second))
    for number, (one, other) in enumerate(zip(first, second, strict=True)):
        if one != other:
            return "error", number
        if meant[0][number] != meant[1][number]:
            return "wrong", number
    return "fine", None
