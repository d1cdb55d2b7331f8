def best_segment(layers, inner):
    """A checkpoint for each layer, as in most recipes."""
    return 1
