"""Fault augmentation: the faults of a published benchmark in the training windows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from sacm.data.corrupt import names
from sacm.errors import ArgumentError
from sacm.strategies.base import Strategy
from sacm.strategies.breaking import break_some
from sacm.strategies.registry import register

_FAMILIES = {"transfer": ("transfer",), "tested": ("tested",), "all": ("tested", "transfer")}


@register("augment")
@dataclass(frozen=True)
class Augment(Strategy):
    """Put faults of SensorFault-Bench into some training windows.

    Source: the fault augmentation of SensorFault-Bench, arXiv:2605.10822.

    families: The kinds of faults: those set aside for training (transfer), the eight that the
        benchmark tests with (tested), or all.
    share: The share of windows that get one, in (0, 1].
    severity: The largest severity, in (0, 1]; each window draws its own below it.
    """

    families: Literal["transfer", "tested", "all"] = "transfer"
    share: float = 0.5
    severity: float = 1.0

    def __post_init__(self) -> None:
        if self.families not in _FAMILIES:
            raise ArgumentError(
                f"augment(families=…) must be {', '.join(_FAMILIES)}, got {self.families!r}."
            )
        for name in ("share", "severity"):
            if not 0 < getattr(self, name) <= 1:
                raise ArgumentError(
                    f"augment({name}=…) must be in (0, 1], got {getattr(self, name)}."
                )

    def training_inputs(self, x: Tensor) -> Tensor:
        """Windows `[B, L, C]`, some of them with one fault of a random kind."""
        kinds = [name for group in _FAMILIES[self.families] for name in names(group)]
        return break_some(x, kinds, share=self.share, severity=self.severity)
