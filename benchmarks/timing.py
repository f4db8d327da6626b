"""Interleaved timing: what is compared runs turn by turn in one process, as ratios."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Ratio:
    """Median of the per-round ratios against a reference, and their quartiles."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.2f} [{self.low:.2f}, {self.high:.2f}]"


def interleave(
    functions: dict[str, Callable[[], object]],
    *,
    rounds: int,
    warmup: int = 3,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Seconds of every call, round by round; one call of each function a round.

    With `time.process_time` as the clock, what other processes do on the machine does not count.
    """
    for _ in range(warmup):
        for function in functions.values():
            function()
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            start = clock()
            function()
            seconds[name].append(clock() - start)
    return seconds


def ratio(seconds: list[float], reference: list[float]) -> Ratio:
    """How long `seconds` took in terms of `reference`, paired round by round."""
    ratios = [a / b for a, b in zip(seconds, reference, strict=True)]
    low, median, high = statistics.quantiles(ratios, n=4)
    return Ratio(median, low, high)
