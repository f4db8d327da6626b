"""How good intervals and quantiles are: coverage, width and CRPS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sacm.errors import ArgumentError


def measure_intervals(
    truth: np.ndarray, lower: np.ndarray, upper: np.ndarray, nominal: float
) -> dict[str, Any]:
    """Count how often targets `[N, H, C]` lie in their intervals; NaN targets do not count.

    Returns:
        `nominal`, the share of targets they should enclose; `coverage`, the share they enclosed;
        `width`, the mean width in the units of the targets; `step_coverage` `[H]` and
        `channel_coverage` `[C]`, None where nothing was observed.

    Raises:
        ArgumentError: No target was observed.
    """
    seen = np.isfinite(truth)
    if not seen.any():
        raise ArgumentError("no target was observed, so there is no coverage to report.")
    inside = seen & (truth >= lower) & (truth <= upper)

    def shares(axes: tuple[int, int]) -> list[float | None]:
        pairs = zip(inside.sum(axis=axes).tolist(), seen.sum(axis=axes).tolist(), strict=True)
        return [hits / count if count else None for hits, count in pairs]

    return {
        "nominal": float(nominal),
        "coverage": float(inside.sum() / seen.sum()),
        "width": float((upper - lower)[seen].mean()),
        "step_coverage": shares((0, 2)),
        "channel_coverage": shares((0, 1)),
    }


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
