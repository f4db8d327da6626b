"""Co-teaching: two networks choose for each other what to learn from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sacm.backbones.base import Backbone
from sacm.errors import ArgumentError
from sacm.strategies.base import (
    CHANGES_NETWORK,
    Strategy,
    StrategyRun,
    TrainingContext,
    TrainingStep,
)
from sacm.strategies.committee import Committee, answer_by_first, make_committee
from sacm.strategies.registry import register
from sacm.strategies.trim import keep_smallest
from sacm.types import TaskName


@register("co_teaching")
@dataclass(frozen=True)
class CoTeaching(Strategy):
    """Train two networks, each on the windows that fit the other best (not for detectors).

    Source: B. Han, Q. Yao, X. Yu, G. Niu, M. Xu, W. Hu, I. Tsang and M. Sugiyama, Co-teaching:
    robust training of deep neural networks with extremely noisy labels, NeurIPS 2018,
    arXiv:1804.06872.

    forget: The share of windows that are left out in the end, in (0, 1).
    warmup: Epochs until that share is reached, in equal steps from 0.
    """

    tasks: ClassVar[tuple[TaskName, ...]] = ("forecasting", "classification")
    roles: ClassVar[tuple[str, ...]] = (CHANGES_NETWORK,)

    forget: float = 0.2
    warmup: int = 10

    def __post_init__(self) -> None:
        if not 0 < self.forget < 1:
            raise ArgumentError(f"co_teaching(forget=…) must be in (0, 1), got {self.forget}.")
        if self.warmup < 1:
            raise ArgumentError(f"co_teaching(warmup=…) must be 1 or more, got {self.warmup}.")

    def build(self, make: Callable[[], Backbone]) -> Backbone:
        """Two networks; the first starts as a single network would, and answers."""
        return make_committee([make(), make()], answer_by_first)

    def begin(self, model: nn.Module, context: TrainingContext) -> StrategyRun:
        """Let each choose for the other."""
        assert isinstance(model, Committee)
        return CoTeachingRun(model, self, context.task)


class CoTeachingRun(StrategyRun):
    """The exchange at work."""

    def __init__(self, committee: Committee, strategy: CoTeaching, task: str) -> None:
        self.committee, self.strategy, self.task = committee, strategy, task
        self.share = 0.0

    def begin_epoch(self, epoch: int) -> None:
        self.share = self.strategy.forget * min(epoch / self.strategy.warmup, 1)

    def change_inputs(self, x: Tensor, step: TrainingStep) -> Tensor:
        # What the peer will be asked about, when the answer of this network has come.
        self.x, self.step = x.detach(), step
        return x

    @torch.no_grad()
    def keep(self, batch: Any, prediction: Tensor) -> Tensor:
        peer = self.committee.all_members[1 - self.committee.turn]
        peer.eval()
        answer = self.step.answer(self.x, peer)
        peer.train()
        kept = keep_smallest(self._losses(answer, batch), self.share)  # [B]
        if self.task == "classification":
            return kept
        return kept.view(-1, 1, 1).expand(prediction.shape)

    def _losses(self, answer: Tensor, batch: Any) -> Tensor:
        """The loss of each window, `[B]`."""
        if self.task == "classification":
            return F.cross_entropy(answer, batch.y, reduction="none")
        error = (answer - batch.y).abs()
        if batch.observed is None:
            return error.mean(dim=(1, 2))
        weight = batch.observed.to(error.dtype)
        return (error * weight).sum(dim=(1, 2)) / weight.sum(dim=(1, 2)).clamp_min(1)
