def runs():
    """As if whatever Dynamo captures anew were also compiled anew."""
    names = ("other size", "scale 3", "transposed", "one transposed", "broadcast")
    return dict.fromkeys((*names, "bfloat16", "a column", "every second"), True)
