"""Several networks from different starts, whose answers are averaged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from sacm.backbones.base import Backbone
from sacm.errors import ArgumentError
from sacm.strategies.base import CHANGES_NETWORK, Strategy
from sacm.strategies.committee import answer_by_mean, make_committee
from sacm.strategies.registry import register


@register("ensemble")
@dataclass(frozen=True)
class Ensemble(Strategy):
    """Train several networks from different starts and average their answers.

    Source: B. Lakshminarayanan, A. Pritzel and C. Blundell, Simple and scalable predictive
    uncertainty estimation using deep ensembles, NeurIPS 2017, arXiv:1612.01474.

    k: How many networks, 2 or more.
    """

    roles: ClassVar[tuple[str, ...]] = (CHANGES_NETWORK,)

    k: int = 5

    def __post_init__(self) -> None:
        if self.k < 2:
            raise ArgumentError(f"ensemble(k=…) must be 2 or more, got {self.k}.")

    def build(self, make: Callable[[], Backbone]) -> Backbone:
        """The networks as one; the first starts as a single network would."""
        return make_committee([make() for _ in range(self.k)], answer_by_mean, apart=True)
