"""Train with faults in some of the windows, and with answers that should not mind."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sacm.data.corrupt import names
from sacm.errors import ArgumentError
from sacm.strategies.base import Strategy, StrategyRun, TrainingContext, TrainingStep
from sacm.strategies.breaking import break_some
from sacm.strategies.registry import register


@register("expose")
@dataclass(frozen=True)
class Expose(Strategy):
    """Put a fault into some training windows: drifts, gains, clipping, lost packets.

    The families are those that SensorFault-Bench sets aside for training, not those it tests.

    share: The share of windows that get one, in (0, 1].
    severity: The largest severity, in (0, 1]; each window draws its own below it.
    consistency: Weight of the distance between the answers for a window with and without its
        fault; 0 leaves it out. Not for anomaly detection.
    """

    share: float = 0.5
    severity: float = 1.0
    consistency: float = 0.0

    def __post_init__(self) -> None:
        for name in ("share", "severity"):
            if not 0 < getattr(self, name) <= 1:
                raise ArgumentError(
                    f"expose({name}=…) must be in (0, 1], got {getattr(self, name)}."
                )
        if not self.consistency >= 0:
            raise ArgumentError(f"expose(consistency=…) must be 0 or more, got {self.consistency}.")

    def check_task(self, task: str) -> None:
        """Refuse the consistency of detectors, whose answers differ in kind."""
        if task == "anomaly" and self.consistency:
            raise ArgumentError(
                "expose(consistency=…) is for forecasting and classification, not for anomaly."
            )

    def training_inputs(self, x: Tensor) -> Tensor:
        """Windows `[B, L, C]`, some of them with one fault of a random family."""
        return break_some(x, names("transfer"), share=self.share, severity=self.severity)

    def begin(self, model: nn.Module, context: TrainingContext) -> StrategyRun:
        """Compare answers, if asked for."""
        return ConsistencyRun(self.consistency) if self.consistency else StrategyRun()


class ConsistencyRun(StrategyRun):
    """Answers for broken windows are drawn to those for the windows as they were."""

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def extra_loss(self, step: TrainingStep, answer: Tensor | None) -> Tensor | None:
        if answer is None:
            return None
        # The clean answer is the teacher: it must not come down to the broken one.
        with torch.no_grad(), step.network_in_evaluation():
            clean = step.answer(step.batch.x)
        if answer.dim() == 2:  # logits
            answer, clean = answer.softmax(dim=-1), clean.softmax(dim=-1)
        return self.weight * (answer - clean).abs().mean()
