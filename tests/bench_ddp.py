"""Step time of the book's data parallel over DistributedDataParallel's, paired. `make bench`.

DDP keeps its gradients as views of its buckets, as ours does always: the faster of its two ways.
"""

from two_ranks import compared

MOST = 1.1
PROGRAM = """
from helpers.lessons.data_parallel_bits import DataParallel
from torch.nn.parallel import DistributedDataParallel

def ddp(cap):
    return lambda model: DistributedDataParallel(
        model, bucket_cap_mb=cap, gradient_as_bucket_view=True
    )

compare("as by default", lambda model: DataParallel(model, [1, 25]), ddp(None), 121)
compare("of 1 MiB", lambda model: DataParallel(model, [1]), ddp(1), 121)
"""


def test_a_step_takes_about_as_long_as_ddps(tmp_path, capsys):
    for name, (ratio, low, high) in compared(PROGRAM, tmp_path).items():
        spread = f"quartiles {low:.2f}-{high:.2f}, 121 pairs"
        with capsys.disabled():
            print(f"\nbuckets {name}: ours / DDP {ratio:.2f} ({spread})")
        assert ratio <= MOST
