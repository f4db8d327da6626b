"""All settings of the scorer and the mapper."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

from sacm.errors import ArgumentError

Detrend = Literal["ols", "endpoint", "none"]


@dataclass(frozen=True)
class SACMConfig:
    """Settings of the scorer and the mapper; the defaults are the paper's.

    Args:
        p_min: Lowest dropout rate, given to the most reliable window of a batch.
        p_max: Upper bound of the dropout rates; ``0 <= p_min < p_max < 1``.
        alpha: Starting value of the learnable sharpness of the spectral mask.
        gamma: Starting value of the learnable slope from scores to rates.
        sfm_weight: Starting value of the learnable weights of the flatness, one per channel.
        sfm_bias: Starting value of the learnable biases of the threshold, one per channel.
        detrend: Line taken away before the spectrum: ``"ols"`` (least squares), ``"endpoint"``
            (through the first and the last value) or ``"none"``.
        log_norm: Scale the log amplitudes of each series to [0, 1].
        sfm_anchor: Let the threshold depend on the spectral flatness of the series.
        eps: Small positive number that keeps divisions and logarithms finite.

    Example:
        >>> SACMConfig(p_max=0.3).p_max
        0.3
        >>> SACMConfig(detrend="cubic")
        Traceback (most recent call last):
        sacm.errors.ArgumentError: detrend must be one of 'ols', 'endpoint', 'none', got 'cubic'.
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

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(SACMConfig).items():
            value = getattr(self, name)
            is_number = isinstance(value, int | float) and math.isfinite(value)
            if kind is float and not is_number:
                raise ArgumentError(f"{name} must be a finite number, got {value!r}.")
            if kind is bool and not isinstance(value, bool):
                raise ArgumentError(f"{name} must be True or False, got {value!r}.")
            if get_origin(kind) is Literal and value not in get_args(kind):
                allowed = ", ".join(map(repr, get_args(kind)))
                raise ArgumentError(f"{name} must be one of {allowed}, got {value!r}.")
        if not 0 <= self.p_min < self.p_max < 1:
            raise ArgumentError(
                f"dropout bounds must satisfy 0 <= p_min < p_max < 1, got p_min={self.p_min} and "
                f"p_max={self.p_max}."
            )
        if self.eps <= 0:
            raise ArgumentError(f"eps must be positive, got {self.eps}.")


def check_config(config: Any) -> SACMConfig:
    """Return the settings, or the paper's for None."""
    if config is None:
        return SACMConfig()
    if not isinstance(config, SACMConfig):
        raise ArgumentError(f"config must be a SACMConfig, got {type(config).__name__}.")
    return config
