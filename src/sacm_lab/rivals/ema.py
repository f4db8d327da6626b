"""A running average of the weights answers in place of the weights themselves."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from sacm.backbones.base import Backbone
from sacm.errors import ArgumentError
from sacm.strategies.base import CHANGES_NETWORK, Strategy, StrategyRun, TrainingContext
from sacm_lab.rivals.committee import Committee, answer_by_last, make_committee


@dataclass(frozen=True)
class WeightAverage(Strategy):
    """Answer with an exponential moving average of the weights of all training steps.

    Source: B. Polyak and A. Juditsky, Acceleration of stochastic approximation by averaging, 1992;
    in this form A. Tarvainen and H. Valpola, Mean teachers are better role models, NeurIPS 2017,
    arXiv:1703.01780.

    decay: What is left of the average after a step, in (0, 1).
    """

    name: ClassVar[str] = "ema"
    roles: ClassVar[tuple[str, ...]] = (CHANGES_NETWORK,)

    decay: float = 0.999

    def __post_init__(self) -> None:
        if not 0 < self.decay < 1:
            raise ArgumentError(f"ema(decay=…) must be in (0, 1), got {self.decay}.")

    def build(self, make: Callable[[], Backbone]) -> Backbone:
        """The network that is trained, and its average."""
        network = make()
        average = copy.deepcopy(network).requires_grad_(False)
        return make_committee([network, average], answer_by_last)

    def begin(self, model: nn.Module, context: TrainingContext) -> StrategyRun:
        """Average after every step."""
        assert isinstance(model, Committee)
        return _AverageRun(model, self.decay)


class _AverageRun(StrategyRun):
    """The average at work; the number of steps makes its start as short as its past."""

    def __init__(self, committee: Committee, decay: float) -> None:
        self.committee, self.decay, self.steps = committee, decay, 0

    @torch.no_grad()
    def after_step(self) -> None:
        self.steps += 1
        # The first steps are averaged with equal weights, until the decay takes over.
        share = max(1 - self.decay, 1 / (self.steps + 1))
        network, average = self.committee.members
        weights = dict(network.named_parameters())
        for name, weight in average.named_parameters():
            weight.lerp_(weights[name], share)
        buffers = dict(network.named_buffers())
        for name, buffer in average.named_buffers():
            buffer.copy_(buffers[name])

    def state_dict(self) -> dict[str, int]:
        return {"steps": self.steps}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.steps = state["steps"]
