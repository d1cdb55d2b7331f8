import pytest

from helpers import BookError, paired, timing
from helpers.timing import Paired


@pytest.fixture
def clock(monkeypatch):
    """A clock that only the work moves: seconds become exact."""

    class Clock:
        now = 0.0

        def advance(self, seconds):
            self.now += seconds

    clock = Clock()
    monkeypatch.setattr(timing, "perf_counter", lambda: clock.now)
    return clock


def test_order_is_a_b_b_a_after_the_warmup(clock):
    calls = []
    work = {name: lambda name=name: (calls.append(name), clock.advance(1)) for name in "ab"}
    result = paired(work["a"], work["b"], rounds=4, warmup=2)
    assert "".join(calls) == "abab" + "abbaabba"
    assert len(result.a) == len(result.b) == 4


def test_ratio_is_a_over_b_even_while_the_machine_slows_down(clock):
    slow = iter(range(1, 100))
    result = paired(
        lambda: clock.advance(3 * next(slow)), lambda: clock.advance(2 * next(slow)), rounds=9
    )
    assert result.ratio == pytest.approx(1.5, rel=0.05)
    low, high = result.spread
    assert low < 1.5 < high
    # Times of the whole run mix slow and fast moments; only pairs compare.
    assert max(result.a) > 4 * min(result.a)


def test_median_and_quartiles_ignore_an_outlier():
    result = Paired(a=(1.0, 2.0, 3.0, 4.0, 500.0), b=(1.0,) * 5)
    assert (result.ratio, result.spread) == (3.0, (2.0, 4.0))
    assert repr(result) == "ratio 3.00 (quartiles 2.00-4.00, 5 pairs)"


def test_too_few_rounds():
    with pytest.raises(BookError, match="at least 3 rounds"):
        paired(lambda: 0, lambda: 0, rounds=1)


def test_threads_are_left_alone():
    import torch

    before = torch.get_num_threads()
    paired(lambda: torch.ones(8) @ torch.ones(8), lambda: None, rounds=3)
    assert torch.get_num_threads() == before
