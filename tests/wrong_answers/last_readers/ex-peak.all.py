def planned_peak(module):
    """As if nothing were freed."""
    held = {}
    for node in module.graph.nodes:
        if node.op != "output":
            held |= storages_of(node)  # noqa: F821
    return sum(held.values())
