"""Faults of one channel that show beside what the other channels say."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sacm.quality.kinds import BURST, SHIFT, SPIKE
from sacm.quality.series.arrays import Bools, Flags, Floats, fill_linear, find_stretches
from sacm.quality.series.drifts import find_returning
from sacm.quality.series.local import Habits, LocalModel, find_local, fit_local
from sacm.quality.series.neighbours import Neighbours, fit_neighbours
from sacm.quality.series.residuals import neighbour_residual

_CLIP = 4.0
_GAIN = 0.7
_SIDE = 12
_OWN = 0.6


@dataclass(frozen=True)
class RelativeModel:
    """One channel as the others tell it, and the noise of what they do not tell.

    Attributes:
        neighbours: Weights of the other channels.
        local: Noise and cuts of the remainder, in deviations of the channel.
        sharper: Whether the remainder is less noisy from row to row than the channel itself;
            else only shifts are judged by it.
    """

    neighbours: Neighbours
    local: LocalModel
    sharper: bool


def fit_relatives(
    plain: list[Floats],
    good: list[Bools],
    starts: list[int],
    locals_: list[LocalModel | None],
    scales: Floats,
    sensitivity: float,
) -> list[RelativeModel | None]:
    """Learn which channels are told by others well enough to be judged beside them.

    Args:
        plain: Values `[T, C]` of each piece without season, around 0 and in deviations.
        good: Values that were found healthy, of each piece.
        starts: Row number of each piece's first row.
        locals_: Noise of each channel by itself; None for channels that are not judged.
        scales: Deviation of each channel `[C]`.
        sensitivity: Above 1 lowers every cut.

    Returns:
        A model for each channel, None where the others tell too little.
    """
    pooled, known = np.concatenate(plain), np.concatenate(good)
    judged = np.array([local is not None for local in locals_])
    clipped = np.clip(pooled, -_CLIP, _CLIP) * (known & judged)
    models: list[RelativeModel | None] = []
    for channel, neighbours in enumerate(fit_neighbours(clipped, known)):
        local = locals_[channel]
        models.append(None)
        if local is None or not known[:, channel].any():
            continue
        rest = [relate(part, neighbours, channel) for part in plain]
        left = np.concatenate(rest)[known[:, channel]]
        if not _spread(left) < _GAIN * _spread(pooled[known[:, channel], channel]):
            continue
        own = [ok[:, channel] for ok in good]
        fitted = fit_local(
            rest,
            own,
            starts,
            local.noise.period,
            1.0,
            sensitivity,
            turns=1,
            habits=Habits(strict=local.habits.strict),
        )
        if fitted is not None:
            sharper = fitted.noise.typical < _GAIN * local.noise.typical / scales[channel]
            # What is far out in itself was found before.
            fitted = replace(fitted, far=float("inf"))
            models[-1] = RelativeModel(neighbours, fitted, bool(sharper))
    return models


def relate(plain: Floats, neighbours: Neighbours, channel: int) -> Floats:
    """One channel `[T]` of a piece `[T, C]` less what the others say of it."""
    return plain[:, channel] - neighbours.predict(np.clip(plain, -_CLIP, _CLIP))


def find_relative(
    plain: Floats, good: Bools, start: int, channel: int, model: RelativeModel
) -> Flags:
    """Flags `[T]` of one channel beside the others.

    A fault of another channel shows in the remainder too; so a flag stays only if the channel
    itself shows at least 60 % of it.

    Args:
        plain: Values `[T, C]` of one piece without season, around 0 and in deviations; what is
            known to be bad is interpolated.
        good: Values of the channel that may be flagged `[T]`.
        start: Row number of the first row.
        channel: Number of the channel.
        model: What was learnt of it.
    """
    rest = relate(plain, model.neighbours, channel)
    if model.sharper:
        found = find_local(rest, good, start, model.local)
    else:
        steady = fill_linear(model.local.noise.remove_season(rest, start), good)
        shifts = find_returning(steady, model.local.shifts, start)
        found = np.where(shifts & good, SHIFT, 0).astype(np.uint8)
    if not found.any():
        return found
    own = plain[:, channel]
    _keep_spikes(found, own, rest)
    for kind in (BURST, SHIFT):
        for start, stop in zip(*find_stretches(found == kind), strict=True):
            measure = _noise_of if kind == BURST else _bump_of
            seen, told = measure(own, start, stop), measure(rest, start, stop)
            if not (seen * told > 0 and abs(seen) >= _OWN * abs(told)):
                found[start:stop][found[start:stop] == kind] = 0
    return found


def _keep_spikes(found: Flags, own: Floats, rest: Floats) -> None:
    """Clear spikes that the channel itself does not show."""
    rows = np.flatnonzero(found == SPIKE)
    seen, told = neighbour_residual(own, rows), neighbour_residual(rest, rows)
    found[rows[(seen * told <= 0) | (np.abs(seen) < _OWN * np.abs(told))]] = 0


def _noise_of(values: Floats, start: int, stop: int) -> float:
    """Median size of the residuals of a stretch."""
    return float(np.median(np.abs(neighbour_residual(values, np.arange(start, stop)))))


def _bump_of(values: Floats, start: int, stop: int) -> float:
    """Difference of a stretch from its two sides."""
    sides = np.concatenate((values[max(0, start - _SIDE) : start], values[stop : stop + _SIDE]))
    return float(np.median(values[start:stop]) - np.median(sides)) if len(sides) else 0.0


def _spread(values: Floats) -> float:
    """Width of the inner 80 %."""
    low, high = np.quantile(values, [0.1, 0.9])
    return float(high - low)
