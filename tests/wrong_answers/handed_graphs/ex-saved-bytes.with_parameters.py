def saved_bytes(levels):
    """Memory counted once, but parameters and inputs with it."""
    saved = {}
    for node in levels.graphs["backward"].graph.find_nodes(op="placeholder"):
        if not node.name.startswith("tangents"):
            saved |= storages_of(node)  # noqa: F821
    return sum(saved.values())
