"""Small-loss trimming: what fits worst in a batch is not learnt from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sacm.errors import ArgumentError
from sacm.strategies.base import CHOOSES_WINDOWS, Strategy, StrategyRun, TrainingContext
from sacm.strategies.committee import acting_in_evaluation
from sacm.strategies.registry import register


def keep_smallest(losses: Tensor, share: float) -> Tensor:
    """True for all but the `share` largest losses, at least one is kept; any shape."""
    flat = losses.flatten()
    dropped = min(int(share * flat.numel()), flat.numel() - 1)
    kept = torch.ones_like(flat, dtype=torch.bool)
    kept[flat.topk(dropped).indices] = False
    return kept.view(losses.shape)


@torch.no_grad()
def score_training_windows(model: Any, x: Tensor) -> Tensor:
    """How anomalous a detector finds each window `[B, L, C]` as a whole: `[B]`.

    In evaluation mode: without dropout, and without a trace in batch statistics.
    """
    with acting_in_evaluation(model):
        scores: Tensor = model.anomaly_scores(x).mean(dim=1)
    return scores


@register("trim")
@dataclass(frozen=True)
class Trim(Strategy):
    """Drop the largest losses of every batch: targets, cases, or windows of a detector.

    Source: trimmed loss as in Y. Shen and S. Sanghavi, Learning with bad training data via
    iterative trimmed loss minimization, ICML 2019, arXiv:1810.11874.

    share: The share of losses that are dropped, in (0, 1).
    """

    roles: ClassVar[tuple[str, ...]] = (CHOOSES_WINDOWS,)

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

    def keep(self, batch: Any, prediction: Tensor) -> Tensor:
        if self.task == "classification":
            losses = F.cross_entropy(prediction, batch.y, reduction="none")
        else:
            losses = (prediction - batch.y).abs()
        return keep_smallest(losses, self.share)

    def detector_loss(self, model: Any, x: Tensor) -> Tensor:
        loss: Tensor = model.training_loss(
            x[keep_smallest(score_training_windows(model, x), self.share)]
        )
        return loss
