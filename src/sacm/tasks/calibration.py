"""How far off the forecasts of a finished run are, measured once, at the end of training.

Quantiles of the residuals of each horizon step and channel, by split conformal prediction: a new
target lies below `forecast + offset` with the wanted probability if it resembles those of the
calibration windows. Windows that move further, and windows of which more was repaired, have wider
intervals: residuals are divided by a factor of their window before they are ranked (Lei et al.,
"Distribution-free predictive inference for regression", JASA 2018).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sacm.data.batches import ForecastBatch, ForecastWindows
from sacm.errors import ArgumentError
from sacm.tasks.base import EVALUATION_BATCH, Calibration, Trained, answers

Array = NDArray[Any]

MOST_WINDOWS, FEWEST_WINDOWS = 2000, 400  # neighbouring windows say almost the same
LARGEST = 1 << 25  # residuals held at once
LARGEST_TABLE = 1 << 23  # numbers stored with a run: 32 MB
STEPS = (200, 40, 20)  # levels are 1/200, 2/200 …; fewer where the table would be too large
MAX_REPAIRED = 0.5  # share of a window's values above which no forecast is made
STEADY = 0.1  # of the usual movement, added to all: windows at rest keep some width
MOST = 4.0  # factors of movement lie between 1 / MOST and MOST
SHOWN_WINDOWS, SHOWN_CHANNELS = 100, 12  # of test forecasts, at most
_TENSORS = ("levels", "offsets", "usual")


@dataclass(frozen=True, eq=False)
class ErrorQuantiles:
    """Quantiles of scaled forecast errors (target minus forecast), by level, step and channel."""

    levels: Array  # [K], ascending
    offsets: Array  # what to add to a forecast [K, H, C]; infinite where there were too few windows
    usual: Array  # how far a usual window moves [C]; 0 where width does not depend on it
    windows: int = 0  # residuals of the step and channel that has the fewest
    source: str = ""  # what the calibration windows were, in words

    @classmethod
    def fit(
        cls, residuals: Array, *, moves: Array | None = None, shares: Array | None = None
    ) -> Self:
        """Rank residuals `[N, H, C]`: target minus forecast, scaled, NaN where not measured.

        `moves` `[N, C]` and `shares` `[N, C]` of the windows are those of `Residuals`.
        """
        _, horizon, channels = residuals.shape
        usual = np.zeros(channels)
        if moves is not None:
            known = np.isfinite(moves).any(axis=0)
            usual[known] = np.nanmedian(moves[:, known], axis=0)
        if shares is not None:
            residuals = np.where((shares > MAX_REPAIRED)[:, None], np.nan, residuals)
            shares = np.minimum(shares, MAX_REPAIRED)
        residuals = residuals / window_factors(moves, shares, usual)[:, None]
        fitting = (steps for steps in STEPS if steps * horizon * channels <= LARGEST_TABLE)
        steps = next(fitting, STEPS[-1])
        levels = np.arange(1, steps) / steps
        ordered = np.sort(residuals, axis=0)  # NaN last
        offsets = np.stack([_rank(ordered, level) for level in levels]).astype(np.float32)
        windows = int(np.isfinite(residuals).sum(axis=0).min())
        return cls(levels, offsets, usual, windows)

    def offset(
        self, level: float, *, moves: Array | None = None, shares: Array | None = None
    ) -> Array:
        """What to add to scaled forecasts of S windows to get a quantile, `[S, H, C]`.

        Between two stored levels the outer one is taken. `moves` and `shares` `[S, C]` are those of
        the windows; without them S is 1. A level that needs more windows is an `ArgumentError`.
        """
        if not 0 < level < 1:
            raise ArgumentError(f"a quantile must lie between 0 and 1, got {level:g}.")
        place = int(np.searchsorted(self.levels, level - 1e-9))
        if level <= 0.5:
            place = int(np.searchsorted(self.levels, level + 1e-9, side="right")) - 1
        inside = 0 <= place < len(self.levels)
        if not inside or not np.isfinite(self.offsets[place]).all():
            needed = math.ceil(1 / min(level, 1 - level)) - 1
            raise ArgumentError(
                f"the quantile {level:g} needs {needed} calibration windows but the run has "
                f"{self.windows}: ask for a lower coverage, or train on more rows."
            )
        factors = window_factors(moves, shares, self.usual)[:, None]
        return np.asarray(self.offsets[place][None].astype(np.float64) * factors)

    @classmethod
    def from_record(cls, record: Calibration) -> Self:
        """What `calibrate_forecasts` wrote; KeyError or ValueError if it is damaged."""
        arrays = {name: record.tensors[name].numpy() for name in _TENSORS}
        return cls(**arrays, windows=int(record.text["windows"]), source=record.text["source"])


def _rank(ordered: Array, level: float) -> Array:
    """The residual `[H, C]` of the rank that conformal prediction asks for; else infinite."""
    counts = np.isfinite(ordered).sum(axis=0)
    upper = level > 0.5
    ranks = np.ceil((counts + 1) * level - 1e-9) if upper else (counts + 1) * level + 1e-9
    ranks = ranks.astype(np.int64)
    enough = (ranks >= 1) & (ranks <= counts)
    places = np.clip(ranks - 1, 0, len(ordered) - 1)
    residual = np.take_along_axis(ordered, places[None], axis=0)[0]
    return np.where(enough, residual, np.inf if upper else -np.inf)


def window_moves(x: Tensor, horizon: int, repaired: Tensor | None = None) -> Array:
    """Mean absolute change `[B, C]` in windows `[B, L, C]` over a horizon, at most half of them.

    Values that were `repaired` `[B, L, C]` do not count; NaN where nothing does.
    """
    lag = max(1, min(horizon, x.shape[1] // 2))
    moves = (x[:, lag:] - x[:, :-lag]).abs()
    if repaired is not None:
        touched = repaired[:, lag:] | repaired[:, :-lag]
        moves = moves.masked_fill(touched.to(moves.device), float("nan"))
    return np.asarray(moves.nanmean(dim=1).cpu().numpy(), np.float64)


def window_factors(moves: Array | None, shares: Array | None, usual: Array) -> Array:
    """How much wider than usual intervals are after S windows `[S, C]`.

    In proportion to their movement, within limits; twice as wide where half of a window was
    repaired, and infinite where everything was.
    """
    factors: Array = np.ones((1, len(usual)))
    if moves is not None:
        moved = (moves / np.where(usual > 0, usual, 1.0) + STEADY) / (1 + STEADY)
        known = (usual > 0) & np.isfinite(moves)
        factors = np.where(known, np.clip(moved, 1 / MOST, MOST), 1.0)
    if shares is not None:
        with np.errstate(divide="ignore"):
            factors = factors * (1 + shares / (1 - np.asarray(shares, dtype=np.float64)))
    return factors


class Residuals(NamedTuple):
    """What forecasts of N windows were off by, and what is known of these windows beforehand."""

    values: Array  # [N, H, C] target minus forecast; NaN where not measured
    moves: Array  # [N, C]
    shares: Array | None  # [N, C] repaired, if anything repairs
    starts: Array  # [N] first rows


def forecast_residuals(trained: Trained, windows: ForecastWindows) -> Residuals:
    """Target minus forecast, scaled, of all windows, or of evenly spaced ones if they are many."""
    largest = LARGEST // max(1, windows.batch([0]).y.numel())
    most = max(FEWEST_WINDOWS, min(MOST_WINDOWS, largest))
    chosen = np.arange(0, len(windows), math.ceil(len(windows) / most))
    values, moves, shares = [], [], []
    parts = np.split(chosen, range(EVALUATION_BATCH, len(chosen), EVALUATION_BATCH))
    for batch, answer in answers(trained, map(windows.batch, parts)):
        values.append(_measured(batch.y - answer, batch).cpu().numpy())
        flags = trained.strategy.flags(batch.x)
        repaired = None if flags is None else flags > 0
        if repaired is not None:
            shares.append(repaired.float().mean(dim=1).cpu().numpy())
        moves.append(window_moves(batch.x, windows.horizon, repaired))
    share = np.concatenate(shares) if shares else None
    return Residuals(np.concatenate(values), np.concatenate(moves), share, windows.starts[chosen])


def _measured(values: Tensor, batch: ForecastBatch) -> Tensor:
    """Values `[B, H, C]` of targets, NaN where these were not fully measured."""
    return values if batch.observed is None else values.where(batch.observed >= 1, torch.nan)


def calibrate_forecasts(trained: Trained, windows: ForecastWindows, *, source: str) -> Calibration:
    """What `ErrorQuantiles.from_record` reads, and the forecasts of `show_forecasts`.

    The windows, which `source` names, lie in order of time and chose nothing.
    """
    residuals, moves, shares, _ = forecast_residuals(trained, windows)
    errors = ErrorQuantiles.fit(residuals, moves=moves, shares=shares)
    tensors = {name: torch.from_numpy(getattr(errors, name)) for name in _TENSORS}
    text = {"source": f"{len(residuals):,} {source} windows", "windows": str(errors.windows)}
    return Calibration({**tensors, **show_forecasts(trained, windows)}, text)


def show_forecasts(trained: Trained, windows: ForecastWindows) -> dict[str, Tensor]:
    """Forecasts of the last test rows and the truth, in raw units, for a picture.

    Of N windows one after the other: `shown_rows` `[N]`, the first forecast row; `shown_forecasts`
    and `shown_truth` `[N, H, C]`, NaN where not measured.
    """
    starts, last = windows.starts, len(windows) - 1
    chosen = np.arange(last, -1, -windows.horizon)[:SHOWN_WINDOWS]
    chosen = chosen[starts[last] - starts[chosen] == last - chosen][::-1]  # of the last series
    batch = windows.batch(chosen)
    ((_, answer),) = answers(trained, [batch])
    shown = {"shown_forecasts": answer.cpu(), "shown_truth": _measured(batch.y, batch)}
    scaler = windows.scaler.of_places(batch.series)
    return {
        "shown_rows": torch.from_numpy(starts[chosen] + windows.input_len),
        **{k: scaler.inverse(v)[..., :SHOWN_CHANNELS].contiguous() for k, v in shown.items()},
    }
