from helpers.lessons.collectives_by_hand import Halving


def recursive_doubling(order):
    """Halves the tensor as well, and forgets the way back."""
    return Halving(order).halve()
