from helpers.lessons.zero3_coupling import gather, world


def gather_half(shard, shape):
    """Gathers in fp32 and casts afterwards: the same on one rank, twice the bytes."""
    return gather(shard, shape, world()).bfloat16()
