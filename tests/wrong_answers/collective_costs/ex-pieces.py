def best_pieces(nbytes, host_of, model):
    """As if more pieces were always better."""
    return 64
