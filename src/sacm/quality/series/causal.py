"""Spikes and bursts judged by the rows before them alone, for rows that have just arrived."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sacm.quality.kinds import BURST, SPIKE
from sacm.quality.series.arrays import Bools, Flags, Floats, join_parts
from sacm.quality.series.bursts import WIDTH, burst_cut
from sacm.quality.series.residuals import QUICK, Noise
from sacm.quality.series.running import five_medians, running_median
from sacm.quality.series.weibull_cut import FEWEST, weibull_cut

_LEVEL = 1e-4
_HEALTHY = 0.003
_BEFORE = 5


@dataclass(frozen=True)
class CausalModel:
    """Cuts for residuals from earlier rows.

    Attributes:
        noise: Season of the channel.
        typical: Median size of a residual from earlier rows.
        spike: Size over what is expected, from which a value is a spike.
        burst: Trailing noise ratio from which a row belongs to a burst.
        floor: Smallest residual that matters, in units of the data.
    """

    noise: Noise
    typical: float
    spike: float
    burst: float
    floor: float


def fit_causal(
    parts: list[Floats],
    good: list[Bools],
    starts: list[int],
    noise: Noise,
    floor: float,
    sensitivity: float = 1.0,
) -> CausalModel | None:
    """Draw the cuts from rows of a channel that were found healthy.

    Args:
        parts: Values `[T]` of each piece.
        good: Healthy values, of each piece.
        starts: Row number of each piece's first row.
        noise: Season and residual sizes of the channel.
        floor: Smallest residual that matters.
        sensitivity: Above 1 lowers every cut.

    Returns:
        The model; None if there are too few residuals to judge.
    """
    measured = []
    for values, ok, start in zip(parts, good, starts, strict=True):
        usual = noise.usual_sizes(len(values), start)[ok] / noise.typical
        sizes = np.abs(backward_residual(noise.remove_season(values, start)[ok]))
        measured.append((sizes, usual))
    pooled = join_parts([sizes for sizes, _ in measured])
    positive = pooled[pooled > 0]
    if len(positive) < FEWEST:
        return None
    typical = float(np.median(positive))
    draft = CausalModel(noise, typical, np.inf, np.inf, floor)
    excess = join_parts([sizes / _expect(sizes, usual, draft) for sizes, usual in measured])
    ratios = join_parts([_trailing_ratio(sizes, usual, draft) for sizes, usual in measured])
    return CausalModel(
        noise=noise,
        typical=typical,
        spike=max(weibull_cut(excess, _LEVEL), float(np.quantile(excess, 1 - _HEALTHY)))
        / sensitivity,
        burst=burst_cut(ratios) / sensitivity,
        floor=floor,
    )


def find_so_far(values: Floats, good: Bools, start: int, model: CausalModel) -> Flags:
    """Flag spikes and bursts of one piece; a row's flag depends on no later row.

    Shifts that return are not judged: whether one returns is known only afterwards.

    Args:
        values: Values `[T]`.
        good: Values that may be flagged `[T]`.
        start: Row number of the first row.
        model: Cuts of the channel.

    Returns:
        Flags `[T]`, 0 where nothing was found.
    """
    flags = np.zeros(len(values), np.uint8)
    if not good.any():
        return flags
    usual = model.noise.usual_sizes(len(values), start)[good] / model.noise.typical
    sizes = np.abs(backward_residual(model.noise.remove_season(values, start)[good]))
    expected = _expect(sizes, usual, model)
    found = np.zeros(len(sizes), np.uint8)
    trailing = running_median(sizes, WIDTH, trailing=True)
    noisy = (_trailing_ratio(sizes, usual, model) > model.burst) & (trailing > model.floor)
    found[noisy & (sizes > 0.5 * trailing)] = BURST
    found[(sizes > model.spike * expected) & (sizes > model.floor) & (found == 0)] = SPIKE
    flags[good] = found
    return flags


def backward_residual(plain: Floats) -> Floats:
    """Signed distance of each value from what the values before it say.

    The smallest of the distances from the median of the five values before, from the last
    value and from the line through the last two; 0 for the first five values.

    Args:
        plain: Good values `[n]` without season, in order.
    """
    residual = np.zeros(len(plain))
    if len(plain) <= _BEFORE:
        return residual
    now, last, second = plain[_BEFORE:], plain[_BEFORE - 1 : -1], plain[_BEFORE - 2 : -2]
    away = np.stack([now - five_medians(plain)[:-1], now - last, now - 2 * last + second])
    nearest = np.abs(away).argmin(axis=0)
    residual[_BEFORE:] = np.take_along_axis(away, nearest[None], axis=0)[0]
    return residual


def _expect(sizes: Floats, usual: Floats, model: CausalModel) -> Floats:
    """Size expected from the phase and from the 51 residuals before each row."""
    ratios = sizes / (usual * model.typical)
    # The row's own residual is left out, else a spike would lift what it is compared with.
    before = np.concatenate((ratios[:1], ratios[:-1]))
    level = running_median(before, QUICK, trailing=True)
    return model.typical * np.maximum(usual * np.maximum(level, 0.7), 0.5)


def _trailing_ratio(sizes: Floats, usual: Floats, model: CausalModel) -> Floats:
    """Median of the last 11 residuals over their usual size."""
    return running_median(sizes / (np.maximum(usual, 0.5) * model.typical), WIDTH, trailing=True)
