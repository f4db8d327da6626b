"""Generalised cross entropy: wrong labels pull less than with cross entropy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor, nn

from sacm.errors import ArgumentError
from sacm.strategies.base import REPLACES_LOSS, Step, Strategy, StrategyRun, TrainingContext
from sacm.types import TaskName


def generalised_cross_entropy(logits: Tensor, labels: Tensor, q: float) -> Tensor:
    """`(1 - p^q) / q` of each case `[B]`, with `p` the probability of its label."""
    logarithm = -F.cross_entropy(logits.float(), labels, reduction="none")  # log p
    return -(q * logarithm).expm1() / q


@dataclass(frozen=True)
class GeneralisedCrossEntropy(Strategy):
    """Replace cross entropy by a loss between it and the absolute error (classification).

    Source: Z. Zhang and M. Sabuncu, Generalized cross entropy loss for training deep neural
    networks with noisy labels, NeurIPS 2018, arXiv:1805.07836.

    q: Between cross entropy (near 0) and the absolute error (1), in (0, 1].
    """

    name: ClassVar[str] = "gce"
    tasks: ClassVar[tuple[TaskName, ...]] = ("classification",)
    roles: ClassVar[tuple[str, ...]] = (REPLACES_LOSS,)

    q: float = 0.7

    def __post_init__(self) -> None:
        if not 0 < self.q <= 1:
            raise ArgumentError(f"gce(q=…) must be in (0, 1], got {self.q}.")

    def begin(self, model: nn.Module, context: TrainingContext) -> StrategyRun:
        """Replace the loss."""
        return _GCERun(self.q)


class _GCERun(StrategyRun):
    """The loss at work."""

    def __init__(self, q: float) -> None:
        self.q = q

    def loss(self, step: Step) -> Tensor:
        logits = step.answer()
        return step.mean(generalised_cross_entropy(logits, step.batch.y, self.q), logits)
