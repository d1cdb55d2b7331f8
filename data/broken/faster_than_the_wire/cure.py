WIRE = 25e6  # bytes a second, each way, for each of four ranks
RANKS = 4
MEASURED = {  # of a tensor of 16 MiB: seconds; of the whole tensor, not of a shard
    "all-reduce": 1.036,
    "reduce-scatter": 0.519,
    "all-gather": 0.517,
}


def busbw(collective, nbytes, seconds, p):
    """Bytes a second that a link sees, if each rank sends no more than it must."""
    times = 2 if collective == "all-reduce" else 1
    return nbytes / seconds * times * (p - 1) / p


for collective, seconds in MEASURED.items():
    rate = busbw(collective, 2**24, seconds, RANKS)
    print(f"{collective:15} {rate / 1e6:5.1f} MB/s on a wire of {WIRE / 1e6:.0f}")
