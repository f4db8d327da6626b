"""Adversarial training: windows moved to where the network errs most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from sacm.errors import ArgumentError
from sacm.strategies.base import REPLACES_LOSS, Step, Strategy, StrategyRun, TrainingContext
from sacm.types import TaskName

_STRIDE = 2.5  # sum of all steps, in radii of the ball


@dataclass(frozen=True)
class PGD(Strategy):
    """Train on windows moved a little to where the loss is largest (not for detectors).

    Source: A. Madry, A. Makelov, L. Schmidt, D. Tsipras and A. Vladu, Towards deep learning models
    resistant to adversarial attacks, ICLR 2018, arXiv:1706.06083.

    epsilon: How far a value may move, in training deviations of its channel.
    steps: Steps uphill, 1 or more.
    """

    name: ClassVar[str] = "pgd"
    tasks: ClassVar[tuple[TaskName, ...]] = ("forecasting", "classification")
    roles: ClassVar[tuple[str, ...]] = (REPLACES_LOSS,)

    epsilon: float = 0.1
    steps: int = 5

    def __post_init__(self) -> None:
        if not self.epsilon > 0:
            raise ArgumentError(f"pgd(epsilon=…) must be positive, got {self.epsilon}.")
        if self.steps < 1:
            raise ArgumentError(f"pgd(steps=…) must be 1 or more, got {self.steps}.")

    def begin(self, model: nn.Module, context: TrainingContext) -> StrategyRun:
        """Attack every batch."""
        return AttackRun(self.epsilon, self.steps)


class AttackRun(StrategyRun):
    """Projected gradient steps in the largest norm, from a random start."""

    def __init__(self, epsilon: float, steps: int) -> None:
        self.epsilon, self.steps = epsilon, steps

    def loss(self, step: Step) -> Tensor:
        return step.loss(self.attack(step))

    def attack(self, step: Step) -> Tensor:
        """The windows of a step, moved to where the loss is larger."""
        x = step.inputs.detach()
        stride = _STRIDE * self.epsilon / self.steps
        moved = x + self.epsilon * (2 * torch.rand_like(x) - 1)
        # In evaluation mode: without dropout, and without a trace in batch statistics.
        with step.evaluating():
            for _ in range(self.steps):
                moved.requires_grad_()
                (uphill,) = torch.autograd.grad(step.loss(moved), moved)
                moved = moved.detach() + stride * uphill.sign()
                moved = x + (moved - x).clamp(-self.epsilon, self.epsilon)
        return moved
