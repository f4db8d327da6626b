"""Train with faults in some of the windows."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from sacm.errors import ArgumentError
from sacm.faults.windows import TRANSFER, break_windows
from sacm.strategies.base import Strategy
from sacm.strategies.registry import register


@register("expose")
@dataclass(frozen=True)
class Expose(Strategy):
    """Put a fault into some training windows: drifts, gains, clipping, lost packets.

    The families are those that SensorFault-Bench sets aside for training, not those it tests.

    share: The share of windows that get one, in (0, 1].
    severity: The largest severity, in (0, 1]; each window draws its own below it.
    """

    share: float = 0.5
    severity: float = 1.0

    def __post_init__(self) -> None:
        for name in ("share", "severity"):
            if not 0 < getattr(self, name) <= 1:
                raise ArgumentError(
                    f"expose({name}=…) must be in (0, 1], got {getattr(self, name)}."
                )

    def training_inputs(self, x: Tensor) -> Tensor:
        """Windows `[B, L, C]`, some of them with one fault of a random family."""
        # Drawn from torch's own generator, which a run seeds for every epoch.
        chosen = torch.rand(len(x)) < self.share
        family = torch.randint(len(TRANSFER), (len(x),))
        severity = self.severity * torch.rand(len(x))
        seed = int(torch.randint(2**31, ()))
        broken = x.clone()
        for number, kind in enumerate(TRANSFER):
            rows = torch.nonzero(chosen & (family == number)).squeeze(1)
            if len(rows):
                own = rows.to(x.device)
                broken[own] = break_windows(x[own], kind, severity[rows], seed=seed + number)
        return broken
