"""Several networks from different starts, whose answers are averaged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

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
from sacm_lab.rivals.committee import Committee, answer_by_mean, make_committee


@dataclass(frozen=True)
class Ensemble(Strategy):
    """Train several networks from different starts and average their answers.

    Source: B. Lakshminarayanan, A. Pritzel and C. Blundell, Simple and scalable predictive
    uncertainty estimation using deep ensembles, NeurIPS 2017, arXiv:1612.01474.

    k: How many networks, 2 or more.
    """

    name: ClassVar[str] = "ensemble"
    roles: ClassVar[tuple[str, ...]] = (CHANGES_NETWORK, REPLACES_LOSS, SETS_RATES)

    k: int = 5

    def __post_init__(self) -> None:
        if self.k < 2:
            raise ArgumentError(f"ensemble(k=…) must be 2 or more, got {self.k}.")

    def build(self, make: Callable[[], Backbone]) -> Backbone:
        """The networks as one; the first starts as a single network would."""
        return make_committee([make() for _ in range(self.k)], answer_by_mean)

    def begin(self, model: nn.Module, context: TrainingContext) -> StrategyRun:
        """Train each network on batches in an order of its own."""
        assert isinstance(model, Committee)
        return _EnsembleRun(model, context)


class _EnsembleRun(StrategyRun):
    """The networks learn side by side."""

    def __init__(self, committee: Committee, context: TrainingContext) -> None:
        self.committee, self.context = committee, context
        self.batches: list[Iterator[Any]] = []

    def begin_epoch(self, epoch: int) -> None:
        assert self.context.batches is not None
        others = range(1, len(self.committee.members))
        self.batches = [self.context.batches(number, epoch) for number in others]

    def loss(self, step: Step) -> Tensor:
        first, *others = self.committee.members
        total = replace(step, model=first).loss()
        for network, batches in zip(others, self.batches, strict=True):
            total = total + replace(step, model=network, batch=next(batches)).loss()
        return total
