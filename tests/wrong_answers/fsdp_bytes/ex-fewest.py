def fewest(layers, most):
    """The sum divided: as if a layer could lie in two units."""
    return -(-sum(layers) // most)
