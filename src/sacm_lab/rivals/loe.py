"""Latent outlier exposure: the most anomalous training windows count as anomalies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from sacm.errors import ArgumentError
from sacm.strategies.base import REPLACES_LOSS, Step, Strategy, StrategyRun, TrainingContext
from sacm.types import TaskName
from sacm_lab.rivals.trim import keep_smallest, score_training_windows

_SMALLEST = 1e-6  # keeps the loss of an anomaly, one over its reconstruction loss, finite


@dataclass(frozen=True)
class LatentOutlierExposure(Strategy):
    """Learn to reconstruct most windows and not to reconstruct the worst (anomaly detection).

    Source: C. Qiu, A. Li, M. Kloft, M. Rudolph and S. Mandt, Latent outlier exposure for anomaly
    detection with contaminated data, ICML 2022, arXiv:2202.08088.

    share: The share of windows that are taken for anomalies, in (0, 1).
    kind: The worst windows count as anomalies (hard), or half as anomalies, half as normal (soft).
    """

    name: ClassVar[str] = "loe"
    tasks: ClassVar[tuple[TaskName, ...]] = ("anomaly",)
    roles: ClassVar[tuple[str, ...]] = (REPLACES_LOSS,)

    share: float = 0.1
    kind: Literal["soft", "hard"] = "soft"

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise ArgumentError(f"loe(share=…) must be in (0, 1), got {self.share}.")
        if self.kind not in ("soft", "hard"):
            raise ArgumentError(f"loe(kind=…) must be soft or hard, got {self.kind!r}.")

    def begin(self, model: nn.Module, context: TrainingContext) -> StrategyRun:
        """Assign labels in every batch."""
        return _ExposureRun(self)


class _ExposureRun(StrategyRun):
    """Labels and losses of every batch."""

    def __init__(self, strategy: LatentOutlierExposure) -> None:
        self.share = strategy.share
        self.weight = (
            1.0 if strategy.kind == "hard" else 0.5
        )  # loss weight of windows treated as anomalous

    def loss(self, step: Step) -> Tensor:
        x = step.inputs
        normal = keep_smallest(score_training_windows(step), self.share)
        # One by one: a detector gives one loss for all windows, and the inverse of a mean is not
        # the mean of inverses.
        total = torch.zeros((), device=x.device)
        for place in (~normal).nonzero():
            loss = step.loss(x[place])
            anomalous = 1 / loss.clamp_min(_SMALLEST)
            total = total + (1 - self.weight) * loss + self.weight * anomalous
        kept = x[normal]
        return (step.loss(kept) * len(kept) + total) / len(x)
