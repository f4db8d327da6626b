"""What a finished run knows of its own errors, measured once, at the end of training.

Forecasts: quantiles of the residuals of each horizon step and channel, by split conformal
prediction: a new target lies below `forecast + offset` with the wanted probability if it resembles
those of the calibration windows. Windows that move further, and windows of which more was repaired,
have wider intervals: residuals are divided by a factor of their window before they are ranked
(locally weighted conformal prediction: Lei et al., "Distribution-free predictive inference for
regression", JASA 2018). The factor is known before the future is, so the coverage stays as it was.
Quantiles that a network learnt are moved by what its calibration windows show (Romano et al.,
"Conformalized quantile regression", NeurIPS 2019).

Anomaly detection: the scores of the validation rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sacm.backbones.quantiles import at_level, find_levels
from sacm.data.batches import ForecastWindows, beside_windows
from sacm.errors import ArgumentError
from sacm.strategies.base import Strategy
from sacm.tasks.base import EVALUATION_BATCH, Calibration, evaluating, to_device

Array = NDArray[Any]

MOST_WINDOWS, FEWEST_WINDOWS = 2000, 400  # neighbouring windows say almost the same
LARGEST = 1 << 25  # residuals held at once
LARGEST_TABLE = 1 << 23  # numbers stored with a run: 32 MB
STEPS = (200, 40, 20)  # levels are 1/200, 2/200 …; fewer where the table would be too large
MAX_REPAIRED = 0.5  # share of a window's values above which no forecast is made
LEAST_WIDENING = 1.0  # intervals double where half of a window was repaired
REPAIRED, ENOUGH = 0.05, 20  # windows above this share teach the widening, if so many there are
STEADY = 0.1  # of the usual movement, added to all: windows at rest keep some width
MOST = 4.0  # factors of movement lie between 1 / MOST and MOST


@dataclass(frozen=True, eq=False)
class ErrorQuantiles:
    """Quantiles of scaled forecast errors (target minus forecast), by level, step and channel.

    Attributes:
        levels: `[K]`, ascending.
        offsets: What to add to a forecast `[K, H, C]`; infinite where there were too few windows.
        usual: How far a usual window moves `[C]`; 0 where width does not depend on it.
        widening: What the odds of a value being repaired are multiplied by to widen intervals.
        windows: How many residuals there are of the step and channel that has the fewest.
        source: What the calibration windows were, in words.
    """

    levels: Array
    offsets: Array
    usual: Array
    widening: float = LEAST_WIDENING
    windows: int = 0
    source: str = ""

    @classmethod
    def fit(
        cls,
        residuals: Array,
        *,
        moves: Array | None = None,
        shares: Array | None = None,
        learnt: Sequence[float] | None = None,
        source: str = "",
    ) -> Self:
        """Rank residuals.

        Args:
            residuals: Target minus forecast `[N, H, C]`, scaled, NaN where the target was not
                measured; target minus each quantile `[N, H, C, Q]` of a network that learnt some.
            moves: How far each window moves `[N, C]`, see `window_moves`.
            shares: Share of each window's values that was repaired `[N, C]`.
            learnt: The Q levels that the network learnt.
            source: What the windows were, in words.
        """
        count, horizon, channels = residuals.shape[:3]
        usual = np.zeros(channels)
        factors = np.ones((count, channels))
        if moves is not None and learnt is None:  # learnt quantiles are wider by themselves
            usual = usual_moves(moves)
            factors = movement_factors(moves, usual)
        widening = LEAST_WIDENING
        if shares is not None:
            size = np.abs(residuals if learnt is None else residuals[..., residuals.shape[3] // 2])
            widening = learn_widening(size / factors[:, None], shares)
            factors = factors * repair_factors(shares, widening)
            refused = shares > MAX_REPAIRED
            residuals = np.where(_spread(refused, residuals), np.nan, residuals)
            factors = np.where(refused, 1.0, factors)
        residuals = residuals / _spread(factors, residuals)
        sizes = [steps for steps in STEPS if steps * horizon * channels <= LARGEST_TABLE]
        steps = (sizes or STEPS[-1:])[0]
        levels = np.arange(1, steps) / steps
        if learnt is None:
            ordered = np.sort(residuals, axis=0)  # NaN last
            table = [_rank(ordered, level) for level in levels]
        else:
            both = torch.from_numpy(residuals)
            table = [
                _rank(np.sort(at_level(both, learnt, level).numpy(), axis=0), level)
                for level in levels
            ]
        counts = np.isfinite(residuals).sum(axis=0)
        offsets = np.stack(table).astype(np.float32)
        return cls(levels, offsets, usual, widening, int(counts.min()), source)

    def offset(
        self, level: float, *, moves: Array | None = None, shares: Array | None = None
    ) -> Array:
        """What to add to scaled forecasts of S windows to get a quantile.

        Args:
            level: Between 0 and 1; between two stored levels the outer one is taken.
            moves: How far each window moves `[S, C]`; None: as usual.
            shares: Share of each window's values that was repaired or missing `[S, C]`.

        Returns:
            `[S, H, C]`; S is 1 without moves and shares.

        Raises:
            ArgumentError: The level is none, or needs more calibration windows than there are.
        """
        if not 0 < level < 1:
            raise ArgumentError(f"a quantile must lie between 0 and 1, got {level:g}.")
        inner = self.levels >= level - 1e-9 if level > 0.5 else self.levels > level + 1e-9
        place = int(inner.argmax()) if inner.any() else len(self.levels)
        place = place if level > 0.5 else place - 1
        offset = self.offsets[place] if 0 <= place < len(self.levels) else np.array([np.inf])
        if not np.isfinite(offset).all():
            needed = math.ceil(1 / min(level, 1 - level)) - 1
            raise ArgumentError(
                f"the quantile {level:g} needs {needed} calibration windows but the run has "
                f"{self.windows}: ask for a lower coverage, or train on more rows."
            )
        offsets: Array = offset[None].astype(np.float64)
        if moves is not None:
            offsets = offsets * movement_factors(moves, self.usual)[:, None]
        if shares is not None:
            offsets = offsets * repair_factors(shares, self.widening)[:, None]
        return offsets

    def to_record(self) -> Calibration:
        """Tensors and text for the folder of a run."""
        arrays = {"levels": self.levels, "offsets": self.offsets, "usual": self.usual}
        text = {"source": self.source, "widening": repr(self.widening)}
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        return Calibration(tensors, {**text, "windows": str(self.windows)})

    @classmethod
    def from_record(cls, record: Calibration) -> Self:
        """What `to_record` wrote.

        Raises:
            KeyError, ValueError: The record is damaged.
        """
        arrays = {name: record.tensors[name].numpy() for name in ("levels", "offsets", "usual")}
        text = record.text
        return cls(
            **arrays,
            widening=float(text["widening"]),
            windows=int(text["windows"]),
            source=text["source"],
        )


def _spread(values: Array, like: Array) -> Array:
    """Values `[N, C]` with the dimensions of residuals `[N, H, C]` or `[N, H, C, Q]`."""
    spread: Array = values[:, None] if like.ndim == 3 else values[:, None, :, None]
    return spread


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
    """Mean absolute change within each window over as many steps as are forecast.

    Args:
        x: Scaled windows `[B, L, C]`.
        horizon: Steps to forecast; of short windows at most half of their length counts.
        repaired: True where a value was repaired or missing `[B, L, C]`; it does not count.

    Returns:
        `[B, C]`, NaN where nothing counts.
    """
    lag = max(1, min(horizon, x.shape[1] // 2))
    moves = (x[:, lag:] - x[:, :-lag]).abs()
    if repaired is not None:
        touched = repaired[:, lag:] | repaired[:, :-lag]
        moves = moves.masked_fill(touched.to(moves.device), float("nan"))
    mean: Array = moves.nanmean(dim=1).cpu().numpy().astype(np.float64)
    return mean


def usual_moves(moves: Array) -> Array:
    """The movement `[C]` of a usual window, from that of many `[N, C]`; 0 where none is known."""
    known = np.isfinite(moves).any(axis=0)
    usual = np.zeros(moves.shape[1])
    usual[known] = np.nanmedian(moves[:, known], axis=0)
    return usual


def movement_factors(moves: Array, usual: Array) -> Array:
    """How much wider than usual intervals are `[S, C]` after windows that move by `moves`."""
    safe = np.where(usual > 0, usual, 1.0)
    factor = (moves / safe + STEADY) / (1 + STEADY)
    factors: Array = np.where(
        (usual > 0) & np.isfinite(moves), np.clip(factor, 1 / MOST, MOST), 1.0
    )
    return factors


def repair_factors(shares: Array, widening: float) -> Array:
    """How much wider intervals are after repairs; infinite where everything was repaired."""
    shares = np.asarray(shares, dtype=np.float64)
    with np.errstate(divide="ignore"):
        factor: Array = 1 + widening * shares / (1 - shares)
    return factor


def learn_widening(sizes: Array, shares: Array) -> float:
    """How absolute residuals `[N, H, C]` grow with the odds of repair; at least the default."""
    touched = (shares > REPAIRED) & (shares <= MAX_REPAIRED)
    if touched.sum() < ENOUGH or (shares <= REPAIRED).sum() < ENOUGH:
        return LEAST_WIDENING
    size = np.nanmean(sizes, axis=1)  # [N, C]
    base = np.nanmean(np.where(shares <= REPAIRED, size, np.nan), axis=0)
    growth = (size / np.where(base > 0, base, np.nan))[touched]
    odds = (shares / (1 - np.minimum(shares, MAX_REPAIRED)))[touched]
    learnt = float((np.nanmean(growth) - 1) / odds.mean())
    return max(LEAST_WIDENING, learnt) if math.isfinite(learnt) else LEAST_WIDENING


class Residuals(NamedTuple):
    """What forecasts of N windows were off by, and what is known of these windows beforehand."""

    values: Array  # [N, H, C] or [N, H, C, Q] target minus forecast; NaN where not measured
    moves: Array  # [N, C]
    shares: Array | None  # [N, C] repaired, if anything repairs


def forecast_residuals(
    model: Any, windows: ForecastWindows, chosen: Array, strategy: Strategy
) -> Residuals:
    """Target minus forecast of the chosen windows, scaled."""
    values, moves, shares = [], [], []
    with evaluating(model) as device:
        for start in range(0, len(chosen), EVALUATION_BATCH):
            batch = to_device(windows.batch(chosen[start : start + EVALUATION_BATCH]), device)
            answer = model(strategy.inputs(batch.x), *beside_windows(batch)).float()
            target = batch.y if answer.dim() == 3 else batch.y.unsqueeze(-1)
            residuals = (target - answer).cpu().numpy()
            if batch.observed is not None:
                residuals[batch.observed.cpu().numpy() < 1] = np.nan
            values.append(residuals)
            flags = strategy.flags(batch.x)
            repaired = None if flags is None else flags > 0
            if repaired is not None:
                shares.append(repaired.float().mean(dim=1).cpu().numpy())
            moves.append(window_moves(batch.x, windows.horizon, repaired))
    share = np.concatenate(shares) if shares else None
    return Residuals(np.concatenate(values), np.concatenate(moves), share)


def spread_out(windows: ForecastWindows) -> Array:
    """Places of all windows, or of evenly spaced ones if they are many."""
    largest = LARGEST // max(1, windows.batch([0]).y.numel())
    most = max(FEWEST_WINDOWS, min(MOST_WINDOWS, largest))
    return np.arange(0, len(windows), math.ceil(len(windows) / most))


def calibrate_forecasts(
    model: Any, windows: ForecastWindows, strategy: Strategy, *, source: str
) -> ErrorQuantiles:
    """Measure how far off forecasts are on windows that the network was not fitted on."""
    residuals = forecast_residuals(model, windows, spread_out(windows), strategy)
    return ErrorQuantiles.fit(
        residuals.values,
        moves=residuals.moves,
        shares=residuals.shares,
        learnt=find_levels(model),
        source=f"{len(residuals.values):,} {source} windows",
    )
