def wrong_by(nodes, inside):
    """Forgets that the root is taken of the sum."""
    return nodes
