def planned_peak(module):
    """Each value counted for itself, as if a view had memory of its own."""
    nodes, dying, peak = module.graph.nodes, last_uses(module.graph), 0  # noqa: F821
    alive = {node for node in nodes if node.op == "placeholder"}
    for node in nodes:
        if node.op != "output":
            alive.add(node)
            peak = max(peak, sum(sum(storages_of(value).values()) for value in alive))  # noqa: F821
        alive -= set(dying[node])
    return peak
