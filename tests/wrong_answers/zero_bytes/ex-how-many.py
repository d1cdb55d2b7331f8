from math import ceil


def how_many(parameters, budget, stage):
    """As if a stage divided all 16 bytes."""
    return ceil(16 * parameters / budget) if stage else 1
