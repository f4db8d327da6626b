"""Ordinary cleaning of training rows, as an engineer writes it: flag by simple rules, fill in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from sacm.errors import ArgumentError
from sacm.quality.predictor import find_season, interpolate, robust_scale
from sacm.strategies.base import Prepared, Strategy
from sacm.types import TaskName

Array = np.ndarray
_TO_DEVIATION = 1.4826  # median absolute deviation to standard deviation


@dataclass(frozen=True)
class Clean(Strategy):
    """Flag training values by simple rules and fill them before training; inputs stay as they are.

    hampel: distance from a running median of 25 rows above 3 deviations, filled by lines. rules:
    long runs of equal values, recurring zeros, segments with large steps and the Hampel filter of a
    day and of 9 rows, filled from the season. tsclean: what trend and season leave, outside 3
    quartile ranges, filled from the season (after R. J. Hyndman's tsclean).

    how: hampel, rules or tsclean.
    drop: Whether flagged targets are left out of the loss.
    """

    name: ClassVar[str] = "clean"
    tasks: ClassVar[tuple[TaskName, ...]] = ("forecasting",)

    how: str = "rules"
    drop: bool = True

    def __post_init__(self) -> None:
        if self.how not in FLAGS:
            raise ArgumentError(f"clean(how=…) must be {', '.join(FLAGS)}, got {self.how!r}.")

    def prepare(self, data: Any, *, window: int) -> Prepared:
        """Clean training and validation rows of each segment; test rows stay as they are."""
        values, stop = data.values.copy(), data.splits.val.stop
        weights = np.ones(values.shape, np.float32) if data.observed is None else data.observed
        weights = np.array(weights, np.float32)
        for segment in data.segments:
            rows = slice(segment.start, min(segment.stop, stop))
            own = values[rows].astype(np.float64)
            if len(own) < 2:
                continue
            bad = ~np.isfinite(own)
            season = find_season(_scaled(interpolate(own, bad)))
            for channel in range(own.shape[1]):
                bad[:, channel] |= FLAGS[self.how](own[:, channel], season)
            values[rows] = fill(own, bad, 0 if self.how == "hampel" else season)
            if self.drop:
                weights[rows][bad] = 0.0
        found = replace(data, values=values, observed=weights)
        return super().prepare(found, window=window)


def _scaled(values: Array) -> Array:
    return (values - np.median(values, axis=0)) / robust_scale(values)


def _rolling_median(values: Array, width: int) -> Array:
    import pandas as pd

    rolling = pd.Series(values).rolling(width, center=True, min_periods=max(3, width // 4))
    return rolling.median().to_numpy()


def _hampel(values: Array, width: int, limit: float, floor: float = 0.0) -> Array:
    """Rows `[T]` far from the running median, in deviations around it of at least `floor`."""
    distance = np.abs(values - _rolling_median(values, width))
    deviation = np.fmax(_TO_DEVIATION * _rolling_median(distance, width), floor)
    return (distance > limit * deviation) & (distance > 0)


def _run_lengths(values: Array) -> tuple[Array, Array]:
    """Length of the run of equal values that each row is in, and which rows begin one."""
    begins = np.concatenate([[True], values[1:] != values[:-1]])
    group = np.cumsum(begins) - 1
    return np.bincount(group)[group], begins


def flag_hampel(values: Array, season: int) -> Array:
    """Hampel filter of 25 rows and 3 deviations."""
    return _hampel(values, 25, 3.0)


def flag_rules(values: Array, season: int) -> Array:
    """Runs, zeros, segments with large steps, and two Hampel filters."""
    import pandas as pd

    known = values[np.isfinite(values)]
    if not len(known):
        return np.zeros(len(values), bool)
    lengths, begins = _run_lengths(values)
    longest = max(6, int(np.quantile(lengths[begins], 0.995)) + 1)
    deviation = float(robust_scale(known[:, None])[0])
    common = pd.Series(known).mode()[0]
    rests = (known == common).mean() > 0.4
    bad = (lengths >= longest) & ~begins & ~(rests & (values == common))
    zeros = (known == 0).mean()
    near = (np.abs(known) < 0.05 * deviation).mean() - zeros
    if 0 < zeros < 0.4 and zeros > 5 * near:
        away = abs(np.median(known)) > deviation
        bad |= (values == 0) & (away | (lengths >= 3))
    left = np.where(bad, np.nan, values)
    steps = np.abs(np.diff(left, prepend=left[:1]))
    rough = _rolling_median(steps, 12)
    moving = steps[steps > 0]
    if len(moving):
        usual = max(4 * np.median(moving), 2 * np.nanquantile(rough, 0.75))
        bad |= rough > usual
    floor, width = 0.05 * deviation, min(max(13, (season or 24) + 1), 97) | 1
    bad |= _hampel(left, width, 3.5, floor)
    return bad | _hampel(np.where(bad, np.nan, values), 9, 4.0, 2 * floor)


def flag_tsclean(values: Array, season: int) -> Array:
    """What a running median and the medians of the phases leave, outside 3 quartile ranges."""
    import pandas as pd

    width = max(2 * season, 24) | 1
    left = values - _rolling_median(values, width)
    if season:
        left = left - pd.Series(left).groupby(np.arange(len(left)) % season).transform("median")
    low, high = np.nanquantile(left, (0.25, 0.75))
    return np.asarray((left < low - 3 * (high - low)) | (left > high + 3 * (high - low)))


FLAGS: dict[str, Callable[[Array, int], Array]] = {
    "hampel": flag_hampel,
    "rules": flag_rules,
    "tsclean": flag_tsclean,
}


def fill(values: Array, bad: Array, season: int) -> Array:
    """Rows `[T, C]`: short bad segments on lines, long ones like the seasons beside them."""
    import pandas as pd

    lines = interpolate(values, bad)
    if not season:
        return lines
    good = pd.DataFrame(np.where(bad, np.nan, values))
    near, far = (
        (good.shift(turns * season) + good.shift(-turns * season)).to_numpy() / 2
        for turns in (1, 2)
    )
    single = good.shift(season).fillna(good.shift(-season)).to_numpy()
    beside = np.where(np.isfinite(near), near, np.where(np.isfinite(single), single, far))
    result = lines.copy()
    for channel in range(values.shape[1]):
        lengths, _ = _run_lengths(bad[:, channel])
        long = bad[:, channel] & (lengths > max(3, season // 4)) & np.isfinite(beside[:, channel])
        result[long, channel] = beside[long, channel]
    return result
