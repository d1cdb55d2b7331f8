from helpers.lessons.zero3_coupling import GatherInGraph


def gather_half(shard, shape):
    """Gathers in fp32 and casts afterwards: the same on one rank, twice the bytes."""
    return GatherInGraph.apply(shard, shape).bfloat16()
