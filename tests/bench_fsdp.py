"""Step time of the book's FSDP over FSDP2's, both eager, paired inside the ranks. `make bench`."""

import pytest
from two_ranks import compared

MOST = 1.0
PROGRAM = """
from helpers.lessons.fsdp_at_work import Policy, WorkingShard
from helpers.lessons.fsdp_sharding import FullyShard, library

fsdp2 = lambda model: library(model, model.blocks)
compare("sharding", lambda model: FullyShard(model, model.blocks), fsdp2, 21)
at_work = lambda model: WorkingShard(model, model.blocks, Policy(prefetch=1))
compare("at work", at_work, fsdp2, 21)
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return compared(PROGRAM, tmp_path_factory.mktemp("bench"))


@pytest.mark.parametrize("name", ["sharding", "at work"])
def test_a_step_takes_no_longer_than_fsdp2s(found, name, capsys):
    ratio, low, high = found[name]
    with capsys.disabled():
        print(f"\n{name}: ours / FSDP2 {ratio:.2f} (quartiles {low:.2f}-{high:.2f}, 21 pairs)")
    assert ratio <= MOST
