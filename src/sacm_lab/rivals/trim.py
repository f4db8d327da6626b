"""Small-loss trimming: what fits worst in a batch is not learnt from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sacm.errors import ArgumentError
from sacm.strategies.base import REPLACES_LOSS, Step, Strategy, StrategyRun, TrainingContext


def keep_smallest(losses: Tensor, share: float) -> Tensor:
    """True for all but the `share` largest losses, at least one is kept; any shape."""
    flat = losses.flatten()
    dropped = min(int(share * flat.numel()), flat.numel() - 1)
    kept = torch.ones_like(flat, dtype=torch.bool)
    kept[flat.topk(dropped).indices] = False
    return kept.view(losses.shape)


@torch.no_grad()
def score_training_windows(step: Step) -> Tensor:
    """How anomalous a detector finds each window of a step as a whole: `[B]`.

    In evaluation mode: without dropout, and without a trace in batch statistics.
    """
    with step.evaluating():
        return step.answer().mean(dim=1)


@dataclass(frozen=True)
class Trim(Strategy):
    """Drop the largest losses of every batch: targets, cases, or windows of a detector.

    Source: trimmed loss as in Y. Shen and S. Sanghavi, Learning with bad training data via
    iterative trimmed loss minimization, ICML 2019, arXiv:1810.11874.

    share: The share of losses that are dropped, in (0, 1).
    """

    name: ClassVar[str] = "trim"
    roles: ClassVar[tuple[str, ...]] = (REPLACES_LOSS,)

    share: float = 0.1

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise ArgumentError(f"trim(share=…) must be in (0, 1), got {self.share}.")

    def begin(self, model: nn.Module, context: TrainingContext) -> StrategyRun:
        """Trim every batch."""
        return _TrimRun(self.share, context.task)


class _TrimRun(StrategyRun):
    """Trimming at work."""

    def __init__(self, share: float, task: str) -> None:
        self.share, self.task = share, task

    def weights(self, batch: Any, prediction: Tensor) -> Tensor:
        if self.task == "classification":
            losses = F.cross_entropy(prediction, batch.y, reduction="none")
        else:
            losses = (prediction - batch.y).abs()
        return keep_smallest(losses, self.share)

    def loss(self, step: Step) -> Tensor | None:
        if self.task != "anomaly":
            return None
        return step.loss(step.inputs[keep_smallest(score_training_windows(step), self.share)])
