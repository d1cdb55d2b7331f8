def keeps_every_bit(op, number):
    """As in school."""
    return number == (1 if op in ("mul", "div") else 0)
