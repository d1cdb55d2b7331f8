def even(work, messages, nbytes, micro):
    """As if the second stage waited for the whole first one."""
    return messages * nbytes / (work / 2)
