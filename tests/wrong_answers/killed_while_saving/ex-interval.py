def interval(save, between):
    """Makes the time for saving equal to all the time between failures lost, not to half of it."""
    return (save * between) ** 0.5
