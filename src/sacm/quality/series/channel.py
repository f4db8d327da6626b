"""Everything that is learnt of one channel, and its judgement of one piece."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sacm.quality.kinds import CLIPPED, CODE, MISSING, RANGE, SPIKE, STUCK
from sacm.quality.series.angles import is_angle
from sacm.quality.series.arrays import Bools, Flags, Floats, fill_linear
from sacm.quality.series.causal import CausalModel, find_so_far, fit_causal
from sacm.quality.series.clipping import find_clipping
from sacm.quality.series.codes import find_codes, match_codes
from sacm.quality.series.limits import find_limits, robust_scale
from sacm.quality.series.local import LocalModel, find_local, fit_local
from sacm.quality.series.lulls import LullModel, find_lulls, fit_lulls
from sacm.quality.series.residuals import neighbour_residual
from sacm.quality.series.runs import RunModel, find_stuck, find_stuck_so_far, fit_runs
from sacm.quality.series.scatter import ScatterModel, find_scattered

FEWEST_VALUES = 100
"""Usable values that a channel needs to be judged at all."""


@dataclass(frozen=True)
class GrossModel:
    """Values that one look at the value or its run tells: codes, limits, clipping, runs.

    Attributes:
        codes: Gap codes.
        low: Lowest value believed.
        high: Highest value believed.
        floor: Value at which the channel is cut off below; minus infinity if it is not.
        ceiling: Value at which it is cut off above; infinity if it is not.
        centre: Median of the channel.
        scale: Deviation of the channel.
        runs: Natural runs of equal values.
    """

    codes: tuple[float, ...]
    low: float
    high: float
    floor: float
    ceiling: float
    centre: float
    scale: float
    runs: RunModel

    def find(self, values: Floats, *, causal: bool = False) -> Flags:
        """Flags `[T]` of one piece; with `causal` no row's flag depends on a later row."""
        flags = np.zeros(len(values), np.uint8)
        missing = ~np.isfinite(values)
        code = match_codes(values, self.codes)
        known = np.where(missing | code, np.nan, values)
        flags[(known < self.low) | (known > self.high)] = RANGE
        find = find_stuck_so_far if causal else find_stuck
        flags[find(known, self.runs)] = STUCK
        flags[(known <= self.floor) | (known >= self.ceiling)] = CLIPPED
        flags[code], flags[missing] = CODE, MISSING
        return flags


@dataclass(frozen=True)
class ChannelModel:
    """What is learnt of one channel; None where there was too little to learn from."""

    gross: GrossModel | None = None
    lulls: LullModel | None = None
    local: LocalModel | None = None
    causal: CausalModel | None = None
    scatter: ScatterModel | None = None

    def find(self, values: Floats, start: int, *, causal: bool = False) -> Flags:
        """Flags `[T]` of one piece whose first row has the number `start`."""
        if self.gross is None:
            return np.where(np.isfinite(values), 0, MISSING).astype(np.uint8)
        flags = self.gross.find(values, causal=causal)
        if self.scatter is not None and not causal:
            flags[find_scattered(values, flags == 0, self.scatter)] = SPIKE
        if self.lulls is not None and not causal:
            flags[find_lulls(values, flags == 0, self.lulls)] = STUCK
        good = flags == 0
        if causal:
            if self.causal is not None:
                found = find_so_far(values, good, start, self.causal)
                flags = np.where(good, found, flags)
        elif self.local is not None:
            found = find_local(values, good, start, self.local)
            if found.any():
                # What was found hid part of the rest: judge once more without it.
                again = find_local(values, good & (found == 0), start, self.local)
                found = np.where(found > 0, found, again)
            flags = np.where(good, found, flags)
        return flags

    def flatten(self, values: Floats, good: Bools, start: int) -> Floats:
        """One piece without season, around 0 and in deviations; interpolated where not good."""
        assert self.gross is not None
        assert self.local is not None
        plain = fill_linear(self.local.noise.remove_season(values, start), good)
        return (plain - self.gross.centre) / self.gross.scale

    def measure(self, values: Floats, good: Bools, start: int) -> tuple[Floats, Floats]:
        """One piece without season in deviations, and its residuals over their typical size."""
        assert self.gross is not None
        assert self.local is not None
        noise = self.local.noise
        plain = fill_linear(noise.remove_season(values, start), good)
        residual = neighbour_residual(plain) / noise.typical
        return plain / self.gross.scale, np.where(good, residual, 0.0)


def fit_gross(parts: list[Floats], sensitivity: float) -> GrossModel | str:
    """Learn codes, limits, clipping and runs of one channel, or say why that is impossible.

    Args:
        parts: Values `[T]` of each piece.
        sensitivity: Above 1 flags more.
    """
    # Sorted once: distinct values and quantiles are then cheap to find.
    finite = np.sort(np.concatenate([part[np.isfinite(part)] for part in parts]))
    if not len(finite):
        return "no usable value"
    if len(finite) < FEWEST_VALUES:
        return f"only {len(finite)} usable values; at least {FEWEST_VALUES} are needed"
    codes = find_codes(finite)
    values = finite[~match_codes(finite, codes)]
    scale = robust_scale(values)
    if not scale > 0:
        return _fit_constant(codes, float(values[0])) if codes else "constant"
    known = [
        np.where(match_codes(part, codes) | ~np.isfinite(part), np.nan, part) for part in parts
    ]
    runs = fit_runs(known, scale, sensitivity)
    floor, ceiling = find_clipping(values, runs.rests)
    if np.isfinite([floor, ceiling]).any():
        # Runs at a limit of the sensor say nothing about how long runs last by nature.
        known = [np.where((part <= floor) | (part >= ceiling), np.nan, part) for part in known]
        runs = fit_runs(known, scale, sensitivity)
    low, high = find_limits(values, sensitivity)
    return GrossModel(codes, low, high, floor, ceiling, float(np.median(values)), scale, runs)


def _fit_constant(codes: tuple[float, ...], value: float) -> GrossModel:
    """A channel that holds one value and gap codes: nothing but the codes can be told."""
    limits = (float("-inf"), float("inf"))
    runs = RunModel((value,), FEWEST_VALUES, True, float("inf"), flat=True, same=0.0)
    return GrossModel(codes, *limits, *limits, value, 0.0, runs)


def fit_channel(
    parts: list[Floats],
    flags: list[Flags],
    starts: list[int],
    gross: GrossModel,
    period: int,
    sensitivity: float,
    turns: int,
) -> tuple[ChannelModel, list[Bools]] | str:
    """Learn the rest of one channel, or say why it is impossible.

    Args:
        parts: Values `[T]` of each piece.
        flags: What `gross` found, of each piece.
        starts: Row number of each piece's first row.
        gross: What one look at the values tells.
        period: Rows of one cycle; 0 without a season.
        sensitivity: Above 1 flags more.
        turns: How often noise and cuts are learnt, each time without what was flagged.

    Returns:
        The model and the healthy values of each piece, or the reason.
    """
    good = [one == 0 for one in flags]
    if is_angle([np.where(ok, part, np.nan) for part, ok in zip(parts, good, strict=True)]):
        return "an angle that wraps around at 360; only gaps, codes, runs and limits are judged"
    lulls = None
    if not gross.runs.rests and not gross.runs.stepwise:
        lulls = fit_lulls(parts, good, sensitivity)
        good = [ok & ~find_lulls(part, ok, lulls) for part, ok in zip(parts, good, strict=True)]
    local = fit_local(
        parts, good, starts, period, gross.scale, sensitivity, flat=gross.runs.flat, turns=turns
    )
    if local is None:
        return "too few values that vary; only gaps, codes, runs and limits are judged"
    usual = replace(local, far=float("inf"))
    healthy = [
        ok & (find_local(part, ok, start, usual) == 0)
        for part, ok, start in zip(parts, good, starts, strict=True)
    ]
    causal = fit_causal(parts, healthy, starts, local.noise, local.floor, sensitivity)
    return ChannelModel(gross, lulls, local, causal), healthy
