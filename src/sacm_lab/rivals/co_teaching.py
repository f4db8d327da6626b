"""Co-teaching: two networks choose for each other what to learn from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from sacm.backbones.base import Backbone
from sacm.errors import ArgumentError
from sacm.strategies.base import (
    CHANGES_NETWORK,
    REPLACES_LOSS,
    SETS_RATES,
    Step,
    Strategy,
    StrategyRun,
    TrainingContext,
)
from sacm.types import TaskName
from sacm_lab.rivals.committee import Committee, answer_by_first, make_committee
from sacm_lab.rivals.trim import keep_smallest


@dataclass(frozen=True)
class CoTeaching(Strategy):
    """Train two networks, each on the windows that fit the other best (not for detectors).

    Source: B. Han, Q. Yao, X. Yu, G. Niu, M. Xu, W. Hu, I. Tsang and M. Sugiyama, Co-teaching:
    robust training of deep neural networks with extremely noisy labels, NeurIPS 2018,
    arXiv:1804.06872.

    forget: The share of windows that are left out in the end, in (0, 1).
    warmup: Epochs until that share is reached, in equal steps from 0.
    """

    name: ClassVar[str] = "co_teaching"
    tasks: ClassVar[tuple[TaskName, ...]] = ("forecasting", "classification")
    roles: ClassVar[tuple[str, ...]] = (CHANGES_NETWORK, REPLACES_LOSS, SETS_RATES)

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
        return CoTeachingRun(model, self)


class CoTeachingRun(StrategyRun):
    """Train two networks, each on the windows that the other fits best."""

    def __init__(self, committee: Committee, strategy: CoTeaching) -> None:
        self.committee, self.strategy = committee, strategy
        self.share = 0.0

    def begin_epoch(self, epoch: int) -> None:
        self.share = self.strategy.forget * min(epoch / self.strategy.warmup, 1)

    def loss(self, step: Step) -> Tensor:
        first, second = self.committee.members
        return self._loss(step, first, second) + self._loss(step, second, first)

    def _loss(self, step: Step, network: Any, peer: Any) -> Tensor:
        """The loss of a network on the windows that its peer finds easiest."""
        own, other = replace(step, model=network), replace(step, model=peer)
        answer = own.answer(step.inputs)
        with torch.no_grad(), other.evaluating():
            easy = _window_means(other.losses(other.answer(step.inputs)), step.batch)
        kept = keep_smallest(easy, self.share)  # [B]
        losses = own.losses(answer)
        keep = kept.view(-1, *[1] * (losses.dim() - 1)).expand(losses.shape)
        weights = keep if (given := own.weights(answer)) is None else keep * given
        return (losses * weights).sum() / weights.sum().clamp_min(1)


def _window_means(losses: Tensor, batch: Any) -> Tensor:
    """The mean loss of each window, `[B]`, from those of its targets or of the case itself."""
    if losses.dim() == 1:
        return losses
    if batch.observed is None:
        return losses.mean(dim=(1, 2))
    weight = batch.observed.to(losses.dtype)
    return (losses * weight).sum(dim=(1, 2)) / weight.sum(dim=(1, 2)).clamp_min(1)
