"""How good intervals and quantiles are: coverage, width and CRPS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sacm.errors import ArgumentError
from sacm.metrics.intervals import Record


@dataclass(frozen=True)
class IntervalReport(Record):
    """What intervals of one nominal coverage did.

    Attributes:
        nominal: The share of targets they should enclose.
        coverage: The share they enclosed.
        width: Mean width, in the units of the targets.
        step_coverage: The share at each horizon step, `[H]`; None where nothing was observed.
        channel_coverage: The share in each channel, `[C]`, likewise.
    """

    nominal: float
    coverage: float
    width: float
    step_coverage: tuple[float | None, ...]
    channel_coverage: tuple[float | None, ...]


def measure_intervals(
    truth: np.ndarray, lower: np.ndarray, upper: np.ndarray, nominal: float
) -> IntervalReport:
    """Count how often targets `[N, H, C]` lie in their intervals; NaN targets do not count.

    Raises:
        ArgumentError: No target was observed, or the shapes differ.
    """
    if truth.shape != lower.shape or truth.shape != upper.shape or truth.ndim != 3:
        raise ArgumentError(
            f"targets and bounds must share one shape [N, H, C], got {truth.shape}, "
            f"{lower.shape} and {upper.shape}."
        )
    seen = np.isfinite(truth)
    if not seen.any():
        raise ArgumentError("no target was observed, so there is no coverage to report.")
    inside = seen & (truth >= lower) & (truth <= upper)

    def shares(axes: tuple[int, int]) -> tuple[float | None, ...]:
        pairs = zip(inside.sum(axis=axes).tolist(), seen.sum(axis=axes).tolist(), strict=True)
        return tuple(hits / count if count else None for hits, count in pairs)

    return IntervalReport(
        nominal=float(nominal),
        coverage=float(inside.sum() / seen.sum()),
        width=float((upper - lower)[seen].mean()),
        step_coverage=shares((0, 2)),
        channel_coverage=shares((0, 1)),
    )


def crps(truth: np.ndarray, quantiles: np.ndarray, levels: Sequence[float]) -> float:
    """Continuous ranked probability score from quantiles: twice the mean pinball loss.

    Args:
        truth: Targets of any shape; NaN do not count.
        quantiles: Forecast quantiles `[Q, *truth.shape]`.
        levels: The Q levels, evenly spaced between 0 and 1.

    Returns:
        The mean over targets, in their units; lower is better. With a single level of 0.5 it is
        the mean absolute error.
    """
    losses = []
    for quantile, level in zip(quantiles, levels, strict=True):
        error = truth - quantile
        losses.append(np.nanmean(np.maximum(level * error, (level - 1) * error)))
    return float(2 * np.mean(losses))
