"""What a batch holds, task by task. Windows are `[B, L, C]` everywhere."""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import Tensor


class ForecastBatch(NamedTuple):
    """Inputs and what follows them.

    `observed` is None, or False where a target was missing and has been filled in. `covariates`
    hold 0 where a past covariate lies in the future. `series` is None if all windows share one
    scaler.
    """

    x: Tensor  # [B, L, C]
    y: Tensor  # [B, H, C]
    stamps: Tensor | None  # [B, L + H, 4]
    observed: Tensor | None  # [B, H, C] bool
    positions: Tensor  # [B] row of the first input step
    covariates: Tensor | None = None  # [B, L + H, K]
    series: Tensor | None = None  # [B] place of its series in the scaler


def beside_windows(batch: Any) -> tuple[Tensor | None, ...]:
    """What a forecasting network takes beside windows: calendar positions, then covariates.

    A batch of a user's own need not have covariates.
    """
    covariates = getattr(batch, "covariates", None)
    if covariates is not None:
        return (batch.stamps, covariates)
    return () if batch.stamps is None else (batch.stamps,)


class LabelledBatch(NamedTuple):
    """Cases and their classes; `mask` is True at real steps, False at padding (where x is 0)."""

    x: Tensor  # [B, L, C]
    mask: Tensor  # [B, L] bool
    y: Tensor  # [B]


class TelemetryBatch(NamedTuple):
    """Windows of telemetry and where each begins."""

    x: Tensor  # [B, L, C]
    positions: Tensor  # [B] row of the first step
