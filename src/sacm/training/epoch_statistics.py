"""What an epoch of training leaves behind: its losses and the windows' dropout rates."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from sacm.errors import SACMError
from sacm.strategies.base import StrategyRun

_CHECK_EVERY = 50  # steps between looks at the loss where looking makes the device wait


class Observed:
    """Losses and rates of one epoch, kept on the device until they are asked for."""

    def __init__(self, save_batch: Callable[[int], Path]) -> None:
        """`save_batch` keeps the batch of a step, the first being 1, for a person to look at."""
        self.save_batch = save_batch
        self.losses: list[Tensor] = []
        self.all_rates: list[Tensor] = []

    def add(self, loss: Tensor, run: StrategyRun, *, where: str) -> None:
        """Remember a step."""
        self.losses.append(loss)
        rates = run.rates()
        if rates is not None:
            self.all_rates.append(rates)
        if loss.device.type == "cpu" or len(self.losses) % _CHECK_EVERY == 0:
            self.check(where=where)

    def check(self, *, where: str) -> None:
        """Stop at the first loss that is not a number."""
        if math.isfinite(float(self.losses[-1])):
            return
        step = next(i for i, loss in enumerate(self.losses, 1) if not math.isfinite(float(loss)))
        raise SACMError(
            f"the loss is {float(self.losses[step - 1])} at {where}, step {step}: lower the "
            "learning rate or look for extreme values in the batch, which the run folder keeps as "
            f"{self.save_batch(step).name}."
        )

    def mean_loss(self) -> float:
        """Mean over the steps."""
        return float(torch.stack(self.losses).mean())

    def rates(self) -> dict[str, float]:
        """Mean, spread and extremes of the windows' dropout rates; empty without any."""
        if not self.all_rates:
            return {}
        rates = torch.cat(self.all_rates).float()
        return {
            "rate_mean": float(rates.mean()),
            "rate_std": float(rates.std(correction=0)),
            "rate_min": float(rates.min()),
            "rate_max": float(rates.max()),
        }
