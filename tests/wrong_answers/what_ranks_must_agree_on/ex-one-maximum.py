def all_equal(number, reduce_max):
    """Each rank compares itself with the maximum: the largest sees no disagreement."""
    return reduce_max([number])[0] == number
