"""Spikes, bursts and returning shifts of one channel: fitted and found together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from sacm.quality.kinds import BURST, SHIFT, SPIKE
from sacm.quality.series.arrays import Bools, Flags, Floats, fill_linear, join_parts
from sacm.quality.series.beats import find_beat
from sacm.quality.series.bursts import burst_cut, find_bursts, noise_ratio
from sacm.quality.series.drifts import find_returning
from sacm.quality.series.excursions import find_excursions
from sacm.quality.series.residuals import Noise, fit_noise, neighbour_residual
from sacm.quality.series.shifts import ShiftCuts, find_jumps, fit_shifts
from sacm.quality.series.spikes import confirm_spikes, isolated, peel_spikes
from sacm.quality.series.weibull_cut import tail_factor, weibull_cut

SHORTEST_PIECE = 24
"""Rows a piece must have for spikes, bursts and shifts to be judged."""

_LEVEL = 1e-4
_MATTERS = 0.3
_FAR = 1.5
_FAR_RARE = 2e-4


@dataclass(frozen=True)
class Habits:
    """Large residuals that are natural in a channel.

    Attributes:
        tail: Factor on the cut of spikes, above 1 for a long tail.
        spike: Smallest cut of spikes, above 0 where they come in a beat.
        burst: Smallest cut of bursts, likewise.
        strict: Factor on what a shift must show.
    """

    tail: float = 1.0
    spike: float = 0.0
    burst: float = 0.0
    strict: float = 1.0


@dataclass(frozen=True)
class LocalModel:
    """Noise of one channel and the cuts drawn from it.

    Attributes:
        noise: Season and residual sizes.
        habits: Large residuals that are natural.
        spike: Size of a residual over what is expected, from which a value is a spike.
        burst: Noise ratio from which a stretch is a burst.
        floor: Smallest residual that matters, in units of the data.
        shifts: Natural jumps and bumps.
        far: Residual that is a spike wherever it is, in units of the data.
    """

    noise: Noise
    habits: Habits
    spike: float
    burst: float
    floor: float
    shifts: ShiftCuts
    far: float = float("inf")

    def allow(self, habits: Habits) -> LocalModel:
        """The same model with cuts not below what is natural."""
        spike, burst = max(self.spike, habits.spike), max(self.burst, habits.burst)
        return replace(self, habits=habits, spike=spike, burst=burst)


def fit_local(
    parts: list[Floats],
    good: list[Bools],
    starts: list[int],
    period: int,
    scale: float,
    sensitivity: float = 1.0,
    *,
    flat: bool = False,
    turns: int = 3,
    habits: Habits | None = None,
) -> LocalModel | None:
    """Learn noise and cuts of one channel, several times, each time without what was flagged.

    Args:
        parts: Values `[T]` of each piece.
        good: Values that are not missing, codes or stuck, of each piece.
        starts: Row number of each piece's first row.
        period: Rows of one cycle; 0 without a season.
        scale: Deviation of the channel.
        sensitivity: Above 1 lowers every cut.
        flat: Whether levels come and go by nature, so that shifts are not judged.
        turns: How often to learn; once is enough for values that were found healthy.
        habits: Large residuals that are natural, if known: where only healthy values are
            passed, every tail looks cut off.

    Returns:
        The model; None if there are too few residuals to judge.
    """
    long = [i for i, part in enumerate(parts) if len(part) >= SHORTEST_PIECE and good[i].any()]
    parts, good = [parts[i] for i in long], [good[i] for i in long]
    starts = [starts[i] for i in long]
    if not parts:
        return None
    used, model = good, None
    for turn in range(turns):
        noise = fit_noise(parts, used, starts, period)
        if noise is None:
            return None
        measured = _measure(parts, used, starts, noise)
        model = _draw_cuts(measured, used, starts, noise, scale, sensitivity, habits)
        if flat:
            model = replace(model, shifts=replace(model.shifts, edge=float("inf")))
        if turn == turns - 1:
            break
        flagged = [find_local(*one, model) for one in zip(parts, good, starts, strict=True)]
        if habits is None:
            habits = model.habits
            # A beat that keeps to a season is part of the sizes by phase already.
            spike, burst = (
                (0.0, 0.0) if period else find_beat(flagged, measured.excess, measured.ratios)
            )
            if spike > 0:
                habits = replace(habits, spike=spike, burst=burst)
                model = model.allow(habits)
                flagged = [find_local(*one, model) for one in zip(parts, good, starts, strict=True)]
        used = [ok & (flags == 0) for ok, flags in zip(good, flagged, strict=True)]
    return model


def find_local(values: Floats, good: Bools, start: int, model: LocalModel) -> Flags:
    """Flag spikes, bursts and shifts in one piece.

    Args:
        values: Values `[T]`.
        good: Values that may be flagged `[T]`.
        start: Row number of the first row.
        model: Noise and cuts of the channel.

    Returns:
        Flags `[T]`, 0 where nothing was found.
    """
    flags = np.zeros(len(values), np.uint8)
    if len(values) < SHORTEST_PIECE or good.sum() < SHORTEST_PIECE:
        return flags
    noise = model.noise
    seasonless = noise.remove_season(values, start)
    plain = fill_linear(seasonless, good)
    sizes = np.abs(neighbour_residual(plain))
    limit = np.maximum(model.spike * noise.expect(sizes, good, start), model.floor)
    excursions = find_excursions(plain, good, limit)
    if excursions.any():
        flags[excursions] = SPIKE
        good = good & ~excursions
        plain = fill_linear(seasonless, good)
        sizes = np.abs(neighbour_residual(plain))
    spikes = peel_spikes(plain, sizes, good, limit)
    alone = isolated(spikes)
    calm = good & ~alone
    if alone.any():
        plain = fill_linear(seasonless, calm)
        sizes = np.abs(neighbour_residual(plain))
    ratios = noise_ratio(sizes, noise.expect(sizes, calm, start, slowly=True), calm)
    bursts = find_bursts(sizes, ratios, calm, model.burst, model.floor)
    # Bursts come first: the largest values of one would else be taken out of it.
    limit = np.minimum(limit, model.far)
    if (sizes > model.far).any():
        spikes = spikes | peel_spikes(plain, sizes, calm & ~bursts, limit)
    spikes = confirm_spikes(
        np.where(good, seasonless, 0.0), spikes & ~bursts, good & ~spikes & ~bursts, limit
    )
    flags[spikes], flags[bursts & ~spikes] = SPIKE, BURST
    left = good & (flags == 0)
    if left.any():
        steady = fill_linear(seasonless, left)
        shifts = find_returning(steady, model.shifts, start)
        flags[shifts & left] = SHIFT
    return flags


class _Measured(NamedTuple):
    """Values without season, their residuals, noise ratios and jumps, of each piece `[T]`."""

    plain: list[Floats]
    sizes: list[Floats]
    excess: list[Floats]
    ratios: list[Floats]
    jumps: list[Floats]


def _measure(parts: list[Floats], good: list[Bools], starts: list[int], noise: Noise) -> _Measured:
    """What the cuts are drawn from."""
    measured = _Measured([], [], [], [], [])
    for values, ok, start in zip(parts, good, starts, strict=True):
        plain = fill_linear(noise.remove_season(values, start), ok)
        sizes = np.abs(neighbour_residual(plain))
        slow = noise.expect(sizes, ok, start, slowly=True)
        measured.plain.append(plain)
        measured.sizes.append(sizes)
        measured.excess.append(sizes / noise.expect(sizes, ok, start))
        measured.ratios.append(noise_ratio(sizes, slow, ok))
        measured.jumps.append(find_jumps(plain))
    return measured


def _draw_cuts(
    measured: _Measured,
    good: list[Bools],
    starts: list[int],
    noise: Noise,
    scale: float,
    sensitivity: float,
    habits: Habits | None,
) -> LocalModel:
    """Cuts from the good rows of all pieces; habits that are not given are measured."""
    levels, sizes, excess, ratios, jumps = (
        join_parts([one[ok] for one, ok in zip(column, good, strict=True)]) for column in measured
    )
    spike = weibull_cut(excess, _LEVEL)
    shifts = fit_shifts(
        measured.plain,
        starts,
        jumps,
        levels,
        noise.period,
        scale,
        sensitivity,
        strict=habits.strict if habits else None,
    )
    burst = burst_cut(ratios)
    # The residuals of bursts are no tail of the others.
    habits = habits or Habits(tail_factor(excess[ratios <= burst], spike), strict=shifts.strict)
    return LocalModel(
        noise=noise,
        habits=habits,
        spike=max(habits.tail * spike, habits.spike) / sensitivity,
        burst=max(burst, habits.burst) / sensitivity,
        floor=_MATTERS * scale / sensitivity,
        shifts=shifts,
        far=far_cut(sizes[ratios <= burst], scale) / sensitivity,
    )


def far_cut(sizes: Floats, scale: float) -> float:
    """Residual that no row has by nature, however lively the rows around it are.

    Args:
        sizes: Sizes of residuals of good rows `[n]`, bursts left out.
        scale: Deviation of the channel.
    """
    cut = max(weibull_cut(sizes, _LEVEL), _FAR * scale)
    return cut * tail_factor(sizes, cut, _FAR_RARE) if np.isfinite(cut) else cut
