"""Compare the times of two programs on a machine that does other things too."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median, quantiles
from time import perf_counter

from helpers.paths import BookError


@dataclass(frozen=True, repr=False)
class Paired:
    """Seconds of each round, `a[i]` and `b[i]` measured next to each other."""

    a: tuple[float, ...]
    b: tuple[float, ...]

    @property
    def ratios(self) -> tuple[float, ...]:
        """Time of a over time of b, for each round: below 1 where a is faster."""
        return tuple(a / b for a, b in zip(self.a, self.b, strict=True))

    @property
    def ratio(self) -> float:
        """Median over the rounds of the time of a over the time of b."""
        return median(self.ratios)

    @property
    def spread(self) -> tuple[float, float]:
        """Lower and upper quartile of the ratios."""
        low, _, high = quantiles(self.ratios, n=4, method="inclusive")
        return low, high

    def __repr__(self) -> str:
        low, high = self.spread
        return f"ratio {self.ratio:.2f} (quartiles {low:.2f}-{high:.2f}, {len(self.a)} pairs)"


def paired(
    a: Callable[[], object], b: Callable[[], object], rounds: int = 15, warmup: int = 1
) -> Paired:
    """Time a() and b() in turn, A B B A A B ..., so that a slow moment hits both alike.

    The result's `ratio` is time of a over time of b. `warmup` untimed calls of each come first
    (a first call compiles). GPU work is waited for. Nothing is asserted: times do not repeat.
    """
    if rounds < 3:
        raise BookError(f"paired() needs at least 3 rounds for quartiles, not {rounds}.")
    for _ in range(warmup):
        a(), b()
    seconds_a, seconds_b = [], []
    for i in range(rounds):
        order = [(a, seconds_a), (b, seconds_b)]
        for work, seconds in order if i % 2 == 0 else reversed(order):
            seconds.append(_time(work))
    return Paired(tuple(seconds_a), tuple(seconds_b))


def _time(work: Callable[[], object]) -> float:
    _wait_for_gpu()
    start = perf_counter()
    work()
    _wait_for_gpu()
    return perf_counter() - start


def _wait_for_gpu() -> None:
    torch = sys.modules.get("torch")  # whoever never imported it has no GPU work to wait for
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()
