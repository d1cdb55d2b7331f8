def calls(stage, units, micro_batches):
    """As if every stage reduced once, at the end."""
    gathered = (2 * units - 1) * micro_batches if stage == 3 else units
    return gathered, units
