"""Intervals that follow a shift: adaptive conformal inference for running use.

Gibbs & Candès, "Adaptive conformal inference under distribution shift", NeurIPS 2021: the level at
which residuals are read moves up after a miss and down after a hit, for each horizon step, channel
and side, so that in the long run the share of misses is the wanted one whatever the data do.
Recent residuals replace the oldest.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from sacm.errors import ArgumentError
from sacm.inference.calibration import Calibration
from sacm.inference.trained import Array

_MEMORY = 300  # residuals kept for each step and channel
_REFRESH = 10  # rows between two sortings of them
_STRETCH = 0.1  # of their range, for every target that a level lies below 0


class Bounds(NamedTuple):
    """Lower and upper bounds `[H, C]` of one forecast, scaled."""

    lower: Array
    upper: Array


class _Issued(NamedTuple):
    """One forecast that is waiting for its truth, and its bounds as offsets from it."""

    time: int
    forecast: Array  # [H, C]
    offsets: Array  # [2, H, C]


class AdaptiveIntervals:
    """Bounds for forecasts that are made one after the other, corrected by every new row.

    Args:
        calibration: Where to start from.
        coverage: The wanted share of targets between the bounds.
        rate: How fast the levels move; larger follows shifts faster and is less steady.

    Example:
        >>> residuals = np.sort(np.random.default_rng(0).normal(size=(200, 2, 1)), axis=0)
        >>> start = Calibration(residuals, np.full((2, 1), 200), 0.0, "examples")
        >>> intervals = AdaptiveIntervals(start, coverage=0.9)
        >>> bounds = intervals.issue(np.zeros((2, 1)))  # a forecast of two steps
        >>> intervals.observe(np.array([0.3]))  # the first of them has become known
        >>> bounds.lower.shape
        (2, 1)
    """

    def __init__(
        self, calibration: Calibration, *, coverage: float = 0.9, rate: float = 0.02
    ) -> None:
        if not 0 < coverage < 1:
            raise ArgumentError(f"coverage must be between 0 and 1, got {coverage}.")
        self._target = (1 - coverage) / 2
        self._rate = rate
        kept = calibration.residuals[: int(calibration.counts.min())]
        step = max(1, len(kept) // _MEMORY)
        # Sorted residuals, evenly thinned, then in random order: the oldest is then any of them.
        self._memory = np.random.default_rng(0).permutation(kept[::step][:_MEMORY])
        if len(self._memory) < 10:
            raise ArgumentError("adaptive intervals need 10 calibration windows: give more rows.")
        self._sorted = np.sort(self._memory, axis=0)
        self._levels = np.full((2, *self._memory.shape[1:]), self._target)  # [2, H, C]
        self._issued: deque[_Issued] = deque()
        self._time = 0

    def issue(self, forecast: Array, *, spread: float = 1.0) -> Bounds:
        """Give bounds for a scaled forecast `[H, C]`, now; `spread` widens them."""
        offsets = spread * np.stack([self._read(0), self._read(1)])
        self._issued.append(_Issued(self._time, forecast, offsets))
        return Bounds(forecast + offsets[0], forecast + offsets[1])

    def observe(self, row: Array) -> None:
        """Learn the next row `[C]`, scaled; NaN where nothing was observed."""
        steps = self._steps()
        forecasts = [each.forecast[step] for each, step in zip(self._issued, steps, strict=True)]
        self.learn(row - np.reshape(forecasts, (len(steps), self._memory.shape[2])))

    def learn(self, residuals: Array) -> None:
        """Learn the next row from what it did to the K forecasts that wait for it.

        Args:
            residuals: The row minus each forecast of it `[K, C]`, the oldest forecast first; NaN
                where nothing was observed.
        """
        steps = self._steps()
        self._time += 1
        if len(steps):
            pairs = zip(self._issued, steps, strict=True)
            offsets = np.stack([each.offsets[:, step] for each, step in pairs], axis=1)
            seen = np.isfinite(residuals)
            for side, missed in enumerate((residuals < offsets[0], residuals > offsets[1])):
                moved = self._levels[side, steps] + self._rate * (self._target - missed) * seen
                self._levels[side, steps] = np.minimum(moved, 0.5)
            place = self._time % len(self._memory)
            kept = np.where(seen, residuals, self._memory[place, steps])
            self._memory[place, steps] = kept
        if self._time % _REFRESH == 0:
            self._sorted = np.sort(self._memory, axis=0)
        while self._issued and self._time - self._issued[0].time >= self._memory.shape[1]:
            self._issued.popleft()

    def _steps(self) -> Array:
        """The step of each waiting forecast that the next row is."""
        return np.array([self._time - each.time for each in self._issued], dtype=np.int64)

    def _read(self, side: int) -> Array:
        """The residual `[H, C]` at the present level of one side; beyond all of them below 0."""
        count, levels = len(self._sorted), self._levels[side]
        rank = np.floor((count + 1) * levels).astype(np.int64).clip(1, count)
        place = rank - 1 if side == 0 else count - rank
        found: Array = np.take_along_axis(self._sorted, place[None], axis=0)[0]
        # The method asks for infinite bounds there; a part of the range of what was seen at a time
        # reaches as far as is needed and can be drawn.
        beyond = np.maximum(-levels, 0) / self._target * _STRETCH
        width = self._sorted[-1] - self._sorted[0]
        bound: Array = found + (-1 if side == 0 else 1) * beyond * width
        return bound
