"""Which way of filling suits a channel at which length of gap: found by hiding good values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sacm.quality.series.arrays import Bools, Floats
from sacm.quality.series.methods import SeriesPart

LENGTHS = (1, 6, 24, 96)
"""Lengths of the stretches that are hidden."""

METHODS = ("line", "centre", "centre with others", "season", "season with others")
"""Ways of filling a gap; a choice is a position here."""

_SHARE = 0.02
_ROUNDS = 2
_PREFERENCE = 0.97
_TO_DEVIATION = 1.25


@dataclass(frozen=True)
class Choice:
    """Best way of filling and its error by length of gap, for one channel.

    Attributes:
        methods: Position in `METHODS` for each of `LENGTHS`.
        errors: Deviation of the filled values from the true ones for each of `LENGTHS`.
        worst: Deviation of a channel about which nothing is known: the end of the growth.
    """

    methods: tuple[int, ...]
    errors: tuple[float, ...]
    worst: float

    def method_at(self, lengths: Floats) -> np.ndarray:
        """Method for gaps of the given lengths."""
        return np.array(self.methods)[nearest_length(lengths)]

    def error_at(self, lengths: Floats) -> Floats:
        """Expected deviation for gaps of the given lengths; it never falls with the length."""
        known = (*LENGTHS, 10 * LENGTHS[-1])
        errors = np.maximum.accumulate((*self.errors, self.worst))
        return np.interp(np.log(np.maximum(lengths, 1)), np.log(known), errors)


def nearest_length(lengths: Floats) -> np.ndarray:
    """Position in `LENGTHS` of the tested length nearest to each length, in octaves."""
    borders = np.sqrt(np.array(LENGTHS[:-1]) * np.array(LENGTHS[1:]))
    return np.searchsorted(borders, lengths)


def choose_methods(
    parts: list[SeriesPart], fill: Callable[[SeriesPart], dict[int, Floats]], scales: Floats
) -> list[Choice]:
    """Hide good stretches, fill them in every way and keep what is best.

    Args:
        parts: Pieces to learn from.
        fill: Fills a piece `[T, C]` in every way, by position in `METHODS`.
        scales: Deviation of each channel.

    Returns:
        The choice of each channel; a line unless something is better by 3 %.
    """
    channels = parts[0][0].shape[1]
    total = np.zeros((len(METHODS), len(LENGTHS), channels))
    count = np.zeros((len(LENGTHS), channels))
    generator = np.random.default_rng(0)
    tried: set[int] = set()
    for _ in range(_ROUNDS):
        for values, good, start in parts:
            hidden = hide_stretches(good, generator)
            filled = fill((values, good & (hidden < 0), start))
            tried |= set(filled)
            for position in range(len(LENGTHS)):
                mask = hidden == position
                count[position] += mask.sum(axis=0)
                for method, guess in filled.items():
                    errors = np.where(mask, np.abs(guess - values), 0.0)
                    total[method, position] += errors.sum(axis=0)
    mean = total / np.maximum(count, 1)
    mean[[method for method in range(len(METHODS)) if method not in tried]] = np.inf
    return [_choose(mean[:, :, c], count[:, c], float(scales[c])) for c in range(channels)]


def hide_stretches(good: Bools, generator: np.random.Generator) -> np.ndarray:
    """Position in `LENGTHS` of the stretch that hides each good value `[T, C]`; -1 for none."""
    rows, channels = good.shape
    hidden = np.full(good.shape, -1)
    for position, length in reversed(list(enumerate(LENGTHS))):
        if length > rows // 10:
            continue
        times = max(2, int(_SHARE * rows / length))
        for channel in range(channels):
            starts = generator.integers(1, rows - length, times)
            stretch = (starts[:, None] + np.arange(length)).ravel()
            hidden[stretch, channel] = position
    hidden[~good] = -1
    return hidden


def _choose(mean: Floats, count: Floats, scale: float) -> Choice:
    """Choice of one channel from mean errors `[methods, lengths]`."""
    tested = np.flatnonzero(count > 0)
    if not len(tested):
        return Choice((0,) * len(LENGTHS), (scale,) * len(LENGTHS), scale)
    mean = mean[:, tested]
    weighed = mean.copy()
    weighed[0] *= _PREFERENCE
    relative = weighed / np.maximum(weighed.min(axis=0), 1e-300)
    best = _smooth(relative).argmin(axis=0)
    errors = _TO_DEVIATION * mean[best, np.arange(len(tested))]
    last = len(tested) - 1
    place = [min(position, last) for position in range(len(LENGTHS))]
    worst = max(scale, float(errors.max()))
    return Choice(tuple(int(best[i]) for i in place), tuple(float(errors[i]) for i in place), worst)


def _smooth(relative: Floats) -> Floats:
    """Mean over neighbouring lengths, so that few stretches do not decide alone."""
    size = relative.shape[1]
    weights = np.maximum(1 - 0.6 * np.abs(np.subtract.outer(np.arange(size), np.arange(size))), 0)
    usable = np.where(np.isfinite(relative), relative, 1e300)
    return usable @ (weights / weights.sum(axis=0))
