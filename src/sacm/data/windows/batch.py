"""What a batch holds, task by task. Windows are `[B, L, C]` everywhere."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class ForecastBatch(NamedTuple):
    """Inputs and what follows them.

    `observed` is None, or False where a target was missing and has been filled in. `covariates`
    hold 0 where a past covariate lies in the future.
    """

    x: Tensor  # [B, L, C]
    y: Tensor  # [B, H, C]
    stamps: Tensor | None  # [B, L + H, 4]
    observed: Tensor | None  # [B, H, C] bool
    positions: Tensor  # [B] row of the first input step
    covariates: Tensor | None = None  # [B, L + H, K]

    @property
    def beside(self) -> tuple[Tensor | None, ...]:
        """What a network takes beside the windows: calendar positions, then covariates."""
        if self.covariates is not None:
            return (self.stamps, self.covariates)
        return () if self.stamps is None else (self.stamps,)


class LabelledBatch(NamedTuple):
    """Cases and their classes; `mask` is True at real steps, False at padding (where x is 0)."""

    x: Tensor  # [B, L, C]
    mask: Tensor  # [B, L] bool
    y: Tensor  # [B]


class TelemetryBatch(NamedTuple):
    """Windows of telemetry and where each begins."""

    x: Tensor  # [B, L, C]
    positions: Tensor  # [B] row of the first step
