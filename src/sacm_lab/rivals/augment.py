"""Fault augmentation: faults of a published benchmark in some training windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from sacm.errors import ArgumentError
from sacm.strategies.base import REPLACES_LOSS, Step, Strategy, StrategyRun, TrainingContext
from sacm_lab.robust.faults import FAULTS
from sacm_lab.robust.faults.windows import corrupt_windows

_FAMILIES = {"transfer": ("transfer",), "tested": ("tested",), "all": ("tested", "transfer")}


@dataclass(frozen=True)
class Augment(Strategy):
    """Put faults of SensorFault-Bench into some training windows.

    Source: the fault augmentation of SensorFault-Bench, arXiv:2605.10822.

    families: The kinds of faults: those set aside for training (transfer), the eight that the
        benchmark tests with (tested), or all.
    share: The share of windows that get one, in (0, 1].
    severity: The largest severity, in (0, 1]; each window draws its own below it.
    """

    name: ClassVar[str] = "augment"

    families: Literal["transfer", "tested", "all"] = "transfer"
    share: float = 0.5
    severity: float = 1.0

    def __post_init__(self) -> None:
        if self.families not in _FAMILIES:
            raise ArgumentError(
                f"augment(families=…) must be {', '.join(_FAMILIES)}, got {self.families!r}."
            )
        _check_shares(self, "share", "severity")

    def inputs(self, x: Tensor, *, training: bool = False) -> Tensor:
        """Windows `[B, L, C]`, in training some of them with one fault of a random kind."""
        if not training:
            return x
        kinds = [name for group in _FAMILIES[self.families] for name in FAULTS.names(group)]
        return corrupt_some(x, kinds, share=self.share, severity=self.severity)


@dataclass(frozen=True)
class Expose(Strategy):
    """Put a fault into some training windows: drifts, gains, clipping, lost packets.

    The families are those that SensorFault-Bench sets aside for training, not those it tests.

    share: The share of windows that get one, in (0, 1].
    severity: The largest severity, in (0, 1]; each window draws its own below it.
    consistency: Weight of the distance between the answers for a window with and without its
        fault; 0 leaves it out. Not for anomaly detection.
    """

    name: ClassVar[str] = "expose"
    roles: ClassVar[tuple[str, ...]] = (REPLACES_LOSS,)

    share: float = 0.5
    severity: float = 1.0
    consistency: float = 0.0

    def __post_init__(self) -> None:
        _check_shares(self, "share", "severity")
        if not self.consistency >= 0:
            raise ArgumentError(f"expose(consistency=…) must be 0 or more, got {self.consistency}.")

    def check_task(self, task: str) -> None:
        """Refuse the consistency of detectors, whose answers differ in kind."""
        if task == "anomaly" and self.consistency:
            raise ArgumentError(
                "expose(consistency=…) is for forecasting and classification, not for anomaly."
            )

    def inputs(self, x: Tensor, *, training: bool = False) -> Tensor:
        """Windows `[B, L, C]`, in training some of them with one fault of a random family."""
        if not training:
            return x
        return corrupt_some(x, FAULTS.names("transfer"), share=self.share, severity=self.severity)

    def begin(self, model: nn.Module, context: TrainingContext) -> StrategyRun:
        """Add the consistency loss if its weight is not 0."""
        return ConsistencyRun(self.consistency) if self.consistency else StrategyRun()


class ConsistencyRun(StrategyRun):
    """Adds a loss between outputs of windows with a fault and of the same windows without."""

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def loss(self, step: Step) -> Tensor:
        answer = step.answer()
        loss = step.mean(step.losses(answer), answer)
        # The clean answer is the teacher: it must not come down to the broken one.
        with torch.no_grad(), step.evaluating():
            clean = step.answer(step.batch.x)
        if answer.dim() == 2:  # logits
            answer, clean = answer.softmax(dim=-1), clean.softmax(dim=-1)
        return loss + self.weight * (answer - clean).abs().mean()


def _check_shares(strategy: Strategy, *names: str) -> None:
    for name in names:
        value = getattr(strategy, name)
        if not 0 < value <= 1:
            raise ArgumentError(f"{strategy.name}({name}=…) must be in (0, 1], got {value}.")


def corrupt_some(x: Tensor, kinds: Sequence[str], *, share: float, severity: float) -> Tensor:
    """Windows `[B, L, C]`, some of them with one fault of a random kind."""
    chosen = torch.rand(len(x)) < share
    family = torch.randint(len(kinds), (len(x),))
    severities = severity * torch.rand(len(x))
    seed = int(torch.randint(2**31, ()))
    broken = x.clone()
    for number, kind in enumerate(kinds):
        rows = torch.nonzero(chosen & (family == number)).squeeze(1)
        if len(rows):
            here = rows.to(x.device)
            broken[here] = corrupt_windows(x[here], kind, severities[rows], seed=seed + number)
    return broken
