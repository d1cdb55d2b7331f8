def keep_small(whole, limit):
    """As if the shard's size were the result's."""
    gathers = [n for n in whole.forward if is_gather(n)]  # noqa: F821
    return saved_without(  # noqa: F821
        whole, [n for n in gathers if n.args[0].meta["val"].nbytes >= limit]
    )
