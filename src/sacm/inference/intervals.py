"""Intervals and quantiles of forecasts, and how well they did where the truth is known.

The calibration of a run is made at the end of its training: see `sacm.tasks.calibration`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sacm.data.batches import ForecastWindows
from sacm.errors import ArgumentError
from sacm.metrics.probabilistic import crps, measure_intervals
from sacm.tasks.calibration import (
    FEWEST_TO_JUDGE,
    Array,
    ErrorQuantiles,
    forecast_residuals,
    halves,
    spread_out,
)

if TYPE_CHECKING:
    from sacm.inference.predictor import Predictor

CRPS_LEVELS = tuple(round(0.05 * place, 2) for place in range(1, 20))
_REFRESH = 10  # rows between two sortings of what adaptive intervals keep
_STRETCH = 0.1  # of their range, for every target that a level lies below 0


class Interval(NamedTuple):
    """Two forecasts that should enclose the truth, each in the form of the data."""

    lower: Any
    upper: Any


def measure_uncertainty(
    predictor: Predictor, windows: ForecastWindows, coverages: Sequence[float]
) -> dict[str, Any]:
    """How intervals would have done: the first half of the windows calibrates, the second tests.

    Windows of the second half whose inputs or targets touch a target of the first are left out.

    Args:
        predictor: A forecasting network.
        windows: Windows in order of time that chose nothing, such as test windows.
        coverages: The nominal coverages.

    Returns:
        For each coverage what fixed and adaptive intervals enclosed and how wide they were, in
        z-scored units; the CRPS of the fixed ones; how many windows calibrated and tested.
    """
    chosen = spread_out(windows)
    residuals = forecast_residuals(predictor.network, windows, chosen, predictor.strategy)
    first, later = halves(windows, chosen)
    before, after = residuals.take(first), residuals.take(later)
    errors = before.fit()

    def bound(level: float) -> Array:
        return after.bound(errors, level)

    truth = after.values
    report: dict[str, Any] = {"calibration_windows": len(first), "windows": len(later)}
    report["crps"] = crps(truth, np.stack([bound(each) for each in CRPS_LEVELS]), CRPS_LEVELS)
    report["intervals"] = []
    plain = ErrorQuantiles.fit(before.values)
    for coverage in coverages:
        fixed = bound((1 - coverage) / 2), bound((1 + coverage) / 2)
        adaptive = follow(plain, truth, windows.starts[chosen[later]], coverage)
        measures = {
            kind: measure_intervals(truth, lower, upper, coverage)
            for kind, (lower, upper) in (("fixed", fixed), ("adaptive", adaptive))
        }
        report["intervals"].append({"nominal": coverage, **measures})
    return report


def follow(
    errors: ErrorQuantiles, residuals: Array, starts: Array, coverage: float
) -> tuple[Array, Array]:
    """Bounds `[N, H, C]` around 0 of adaptive intervals that learn row by row, as in use."""
    intervals = AdaptiveIntervals(errors, coverage=coverage)
    horizon = residuals.shape[1]
    lower, upper = np.empty_like(residuals), np.empty_like(residuals)
    waiting: list[int] = []
    for place, start in enumerate(starts):
        for time in range(starts[place - 1], start) if place else ():
            known = [residuals[each, time - starts[each]] for each in waiting]
            intervals.learn(np.reshape(known, (len(known), residuals.shape[2])))
            waiting = [each for each in waiting if time + 1 - starts[each] < horizon]
        lower[place], upper[place] = intervals.issue(np.zeros(residuals.shape[1:]))
        waiting.append(place)
    return lower, upper


class AdaptiveIntervals:
    """Bounds for forecasts that are made one after the other, corrected by every new row.

    Adaptive conformal inference (Gibbs & Candès, "Adaptive conformal inference under distribution
    shift", NeurIPS 2021): the level at which residuals are read moves down after a miss and up
    after a hit, for each horizon step, channel and side, so that in the long run the share of
    misses is the wanted one whatever the data do. Recent residuals replace the oldest.

    Args:
        errors: Where to start from: `Predictor.errors`.
        coverage: The wanted share of targets between the bounds.
        rate: How fast the levels move; larger follows shifts faster and is less steady.

    Example:
        >>> residuals = np.random.default_rng(0).normal(size=(200, 2, 1))
        >>> intervals = AdaptiveIntervals(ErrorQuantiles.fit(residuals), coverage=0.9)
        >>> bounds = intervals.issue(np.zeros((2, 1)))  # a forecast of two steps
        >>> intervals.observe(np.array([0.3]))  # the first of them has become known
        >>> bounds.lower.shape
        (2, 1)
    """

    def __init__(
        self, errors: ErrorQuantiles, *, coverage: float = 0.9, rate: float = 0.02
    ) -> None:
        if not 0 < coverage < 1:
            raise ArgumentError(f"coverage must be between 0 and 1, got {coverage}.")
        if errors.windows < FEWEST_TO_JUDGE:
            raise ArgumentError(f"adaptive intervals need {FEWEST_TO_JUDGE} calibration windows.")
        self._target, self._rate, self._time = (1 - coverage) / 2, rate, 0
        kept = errors.offsets[np.isfinite(errors.offsets).all(axis=(1, 2))].astype(np.float64)
        # In random order, so that the oldest is any of them.
        self._memory = np.random.default_rng(0).permutation(kept)
        self._sorted = np.sort(self._memory, axis=0)
        self._levels = np.full((2, *self._memory.shape[1:]), self._target)  # [2, H, C]
        # Time, forecast [H, C] and offsets [2, H, C] of forecasts whose truth is not known yet.
        self._issued: list[tuple[int, Array, Array]] = []

    def issue(self, forecast: Array) -> Interval:
        """Give bounds for a scaled forecast `[H, C]`, now."""
        offsets = np.stack([self._read(0), self._read(1)])
        self._issued.append((self._time, forecast, offsets))
        return Interval(forecast + offsets[0], forecast + offsets[1])

    def observe(self, row: Array) -> None:
        """Learn the next row `[C]`, scaled; NaN where nothing was measured."""
        forecasts = [forecast[self._time - time] for time, forecast, _ in self._issued]
        self.learn(row - np.reshape(forecasts, (-1, self._memory.shape[2])))

    def learn(self, residuals: Array) -> None:
        """Learn the next row minus each of the K forecasts that wait for it `[K, C]`."""
        steps = np.array([self._time - time for time, *_ in self._issued], dtype=np.int64)
        if len(steps):
            pairs = zip(self._issued, steps, strict=True)
            offsets = np.stack([offsets[:, step] for (*_, offsets), step in pairs], axis=1)
            seen = np.isfinite(residuals)
            for side, missed in enumerate((residuals < offsets[0], residuals > offsets[1])):
                moved = self._levels[side, steps] + self._rate * (self._target - missed) * seen
                self._levels[side, steps] = np.minimum(moved, 0.5)
            place = (self._time + 1) % len(self._memory)
            self._memory[place, steps] = np.where(seen, residuals, self._memory[place, steps])
        self._time += 1
        if self._time % _REFRESH == 0:
            self._sorted = np.sort(self._memory, axis=0)
        oldest = self._time - self._memory.shape[1]
        self._issued = [each for each in self._issued if each[0] > oldest]

    def _read(self, side: int) -> Array:
        """The residual `[H, C]` at the present level of one side; beyond all of them below 0."""
        count, levels = len(self._sorted), self._levels[side]
        rank = np.floor((count + 1) * levels).astype(np.int64).clip(1, count)
        place = rank - 1 if side == 0 else count - rank
        residual: Array = np.take_along_axis(self._sorted, place[None], axis=0)[0]
        # The method asks for infinite bounds there; a part of the range of what was seen at a time
        # reaches as far as is needed and can be drawn.
        beyond = np.maximum(-levels, 0) / self._target * _STRETCH
        width = self._sorted[-1] - self._sorted[0]
        bound: Array = residual + (-1 if side == 0 else 1) * beyond * width
        return bound
