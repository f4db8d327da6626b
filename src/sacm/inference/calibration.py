"""Conformal calibration: how far off forecasts were on windows that chose nothing.

For each horizon step and channel the residuals of calibration windows are kept in order. The
quantile of a forecast is the forecast plus the residual of the rank that split conformal
prediction asks for: a new target lies below it with the wanted probability if it resembles those
of the calibration windows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sacm.backbones.quantiles import at_level
from sacm.data.batches import ForecastWindows, beside_windows
from sacm.errors import ArgumentError
from sacm.inference.liveliness import usual_moves, width_factors, window_moves
from sacm.inference.trained import Array, TrainedNetwork
from sacm.tasks.base import EVALUATION_BATCH

_LARGEST = 1 << 25  # residuals kept at once; neighbouring windows say almost the same
_ENOUGH = 20  # calibration windows with repairs, from which their effect is learnt
_REPAIRED = 0.05  # share of a window's values from which it counts as repaired
_WIDENING = 1.0  # without such windows: one repaired throughout has twice the width


@dataclass(frozen=True, eq=False)
class Calibration:
    """Residuals of calibration windows, scaled, and what repairs do to them.

    Attributes:
        residuals: Target minus forecast `[N, H, C]`, ascending along N, NaN last.
        counts: Residuals of each step and channel that are numbers, `[H, C]`.
        widening: How much wider than others intervals are after a window that was repaired
            throughout: residuals are divided by `1 + widening * share` before they are kept.
        source: What the windows were, in words.
        usual: How far a usual window moves, `[C]`: residuals are divided by the factor of their
            window, see `liveliness`; None if they are not.
    """

    residuals: Array
    counts: Array
    widening: float
    source: str
    usual: Array | None = None

    def offsets(
        self, levels: Sequence[float], shares: Array | None = None, moves: Array | None = None
    ) -> Array:
        """What to add to scaled forecasts to get quantiles.

        Args:
            levels: Q levels between 0 and 1.
            shares: Repaired share of each window `[S]`; None if nothing was repaired.
            moves: How far each window moves `[S, C]`, as `window_moves` says; None: as usual.

        Returns:
            Scaled offsets `[Q, S, H, C]`, S being 1 without shares and moves.

        Raises:
            ArgumentError: A level needs more calibration windows than there are.
        """
        found = np.stack([self._offset(level) for level in levels])[:, None]  # [Q, 1, H, C]
        if moves is not None and self.usual is not None:
            found = found * width_factors(moves, self.usual)[None, :, None, :]
        return found if shares is None else found * self.spread(shares)[None, :, None, None]

    def spread(self, shares: Array) -> Array:
        """The factor `[S]` of intervals after windows with these repaired shares."""
        factor: Array = 1 + self.widening * np.asarray(shares, dtype=np.float64)
        return factor

    def _offset(self, level: float) -> Array:
        if not 0 < level < 1:
            raise ArgumentError(f"a quantile must lie between 0 and 1, got {level}.")
        if level > 0.5:
            ranks = np.ceil((self.counts + 1) * level - 1e-9)
        else:
            ranks = np.floor((self.counts + 1) * level + 1e-9)
        ranks = ranks.astype(np.int64)
        if (ranks < 1).any() or (ranks > self.counts).any():
            needed = math.ceil(1 / min(level, 1 - level)) - 1
            raise ArgumentError(
                f"the quantile {level:g} needs {needed} calibration windows but there are "
                f"{int(self.counts.min())}: ask for a lower coverage, or give more rows."
            )
        offset: Array = np.take_along_axis(self.residuals, ranks[None] - 1, axis=0)[0]
        return offset


def calibrate(
    trained: TrainedNetwork,
    windows: ForecastWindows,
    *,
    source: str,
    level: float | None = None,
    local: bool = False,
) -> Calibration:
    """Learn how far off forecasts are from windows that chose nothing.

    Args:
        trained: The network.
        windows: Forecasting windows that neither trained it nor chose its epoch.
        source: What they are, in words, for notes.
        level: The quantile that residuals are measured from, for networks that give some.
        local: Whether intervals are wider after windows that move further.

    Returns:
        The calibration, for each horizon step and channel.

    Raises:
        ArgumentError: There is no window.
    """
    if not len(windows):
        raise ArgumentError("there is no calibration window: give more rows.")
    chosen = spread_out(windows)
    found = signed_residuals(trained, windows, chosen, level)
    moves = found.moves if local else None
    return from_residuals(found.values, found.shares, source=source, moves=moves)


def from_residuals(
    residuals: Array, shares: Array | None, *, source: str, moves: Array | None = None
) -> Calibration:
    """Make a calibration of residuals `[N, H, C]`, repaired shares `[N]` and moves `[N, C]`."""
    usual = None if moves is None else usual_moves(moves)
    if moves is not None and usual is not None:
        residuals = residuals / width_factors(moves, usual)[:, None]
    widening = 0.0 if shares is None else learn_widening(residuals, shares)
    if shares is not None:
        residuals = residuals / (1 + widening * shares[:, None, None])
    counts = np.isfinite(residuals).sum(axis=0)
    return Calibration(np.sort(residuals, axis=0), counts, widening, source, usual)


def learn_widening(residuals: Array, shares: Array) -> float:
    """How mean absolute residuals grow with the repaired share, relative to none repaired."""
    touched = shares > _REPAIRED
    if touched.sum() < _ENOUGH or (~touched).sum() < _ENOUGH:
        return _WIDENING
    size = np.nanmean(np.abs(residuals), axis=(1, 2))
    base = np.nanmean(size[~touched])
    growth = (np.nanmean(size[touched]) / base - 1) / shares[touched].mean() if base else 0.0
    return max(0.0, float(growth))


def spread_out(windows: ForecastWindows) -> Array:
    """Places of all windows, or of evenly spaced ones if they are too many to hold."""
    step = math.ceil(len(windows) * windows.batch([0]).y.numel() / _LARGEST)
    return np.arange(0, len(windows), step)


class Residuals(NamedTuple):
    """What forecasts of N windows were off by, and what is known of these windows beforehand."""

    values: Array  # [N, H, C] target minus forecast, scaled; NaN where unobserved
    shares: Array | None  # [N] repaired shares, if anything repairs
    moves: Array  # [N, C] how far each moves


def signed_residuals(
    trained: TrainedNetwork, windows: ForecastWindows, chosen: Array, level: float | None = None
) -> Residuals:
    """Target minus forecast of the chosen windows, scaled.

    With a level it is the target minus that quantile, if the network gives quantiles.
    """
    parts, shares, moves = [], [], []
    for start in range(0, len(chosen), EVALUATION_BATCH):
        batch = windows.batch(chosen[start : start + EVALUATION_BATCH])
        answer = trained.answer(trained.network, batch.x, *beside_windows(batch))
        forecast = at_level(answer, trained.settings.train_quantiles, level)
        residuals = (batch.y - forecast).numpy()
        if batch.observed is not None:
            residuals[batch.observed.numpy() < 1] = np.nan
        parts.append(residuals)
        repairs = trained.strategy.count_repairs(batch.x)
        if repairs is not None:
            shares.append((repairs > 0).float().mean(dim=(1, 2)).cpu().numpy())
        moves.append(window_moves(batch.x, windows.horizon, repairs))
    share = np.concatenate(shares) if shares else None
    return Residuals(np.concatenate(parts), share, np.concatenate(moves))
