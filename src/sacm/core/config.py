"""Every setting of the method, in one frozen place."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Literal, get_args

from sacm.errors import ArgumentError

Detrend = Literal["ols", "endpoint", "none"]
ScoreRange = Literal["batch", "running"]
NonFinite = Literal["propagate", "max_rate"]


@dataclass(frozen=True)
class SACMConfig:
    """Settings of scorer and mapper; the defaults are the paper's.

    p_min, p_max: bounds of the dropout rates. alpha, gamma, sfm_weight, sfm_bias: starting values
    of the 2C + 2 learnable scalars. detrend, log_norm, sfm_anchor: the ablations of the scorer.
    score_range: normalise scores by the batch's own minimum and maximum (the paper), or by running
    averages of them, for very small or very uneven batches. global_batch: under torch.distributed
    the batch is that of all processes. nonfinite: a window with NaN makes all rates NaN, as it
    makes the loss, and one with infinity counts as very large; or both get p_max and leave the
    others' rates alone.
    """

    p_min: float = 0.05
    p_max: float = 0.50
    alpha: float = 10.0
    gamma: float = 1.0
    sfm_weight: float = 1.0
    sfm_bias: float = 0.0
    detrend: Detrend = "ols"
    log_norm: bool = True
    sfm_anchor: bool = True
    eps: float = 1e-8
    score_range: ScoreRange = "batch"
    global_batch: bool = True
    nonfinite: NonFinite = "propagate"

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(field.default, float) and not (
                isinstance(value, int | float) and math.isfinite(value)
            ):
                raise ArgumentError(f"{field.name} must be a finite number, got {value!r}.")
            if isinstance(field.default, bool) and not isinstance(value, bool):
                raise ArgumentError(f"{field.name} must be True or False, got {value!r}.")
        if not 0 <= self.p_min < self.p_max < 1:
            raise ArgumentError(
                f"dropout bounds must satisfy 0 <= p_min < p_max < 1, got p_min={self.p_min} and "
                f"p_max={self.p_max}."
            )
        if self.eps <= 0:
            raise ArgumentError(f"eps must be positive, got {self.eps}.")
        choices = {"detrend": Detrend, "score_range": ScoreRange, "nonfinite": NonFinite}
        for name, choice in choices.items():
            if getattr(self, name) not in get_args(choice):
                allowed = ", ".join(map(repr, get_args(choice)))
                raise ArgumentError(
                    f"{name} must be one of {allowed}, got {getattr(self, name)!r}."
                )
