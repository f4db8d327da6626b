"""What every backbone is: one interface, and one kind of network for each of three tasks."""

from __future__ import annotations

from abc import abstractmethod
from typing import get_args

import torch
from torch import Tensor, nn

from sacm.errors import ArgumentError
from sacm.inject.sites import SiteLayout
from sacm.types import ScoreKind, TaskName


class Backbone(nn.Module):
    """A network over windows `[B, L, C]`; `sacm_layouts` says whose rows each dropout sees."""

    def __init__(self, *, input_len: int, channels: int) -> None:
        super().__init__()
        self.check_size(input_len=input_len, channels=channels)
        self.input_len = input_len
        self.channels = channels
        self.sacm_layouts: dict[str, SiteLayout] = {}

    def check_size(self, least: int = 1, **sizes: int) -> None:
        for name, size in sizes.items():
            if size < least:
                raise ArgumentError(
                    f"{type(self).__name__}: {name} must be at least {least}, got {size}."
                )

    def check_window(self, x: Tensor) -> None:
        """Refuse anything but `[B, input_len, channels]`."""
        if x.dim() != 3 or x.shape[1] != self.input_len or x.shape[2] != self.channels:
            raise ArgumentError(
                f"{type(self).__name__} was built for windows [B, {self.input_len}, "
                f"{self.channels}] (batch, time, channel) but got {list(x.shape)}."
            )

    def state_layouts(self, folds: dict[str, int] | None = None) -> None:
        """Record every dropout site as batch-major over dimension 0.

        The fold is 1, or what `folds` says for the site or for the nearest module that contains it.
        """
        for name, module in self.named_modules():
            if isinstance(module, nn.Dropout):
                owners = [key for key in folds or {} if f"{name}.".startswith(f"{key}.")]
                fold = folds[max(owners, key=len)] if folds and owners else 1
                self.sacm_layouts[name] = SiteLayout(dim=0, fold=fold)

    def prepare(self, train_x: Tensor) -> None:
        """Fit what is fitted once, before the first step, on training windows `[N, L, C]` only."""

    @property
    def prepares(self) -> bool:
        """Whether `prepare` does anything; it is given a copy of all training windows."""
        return type(self).prepare is not Backbone.prepare

    def set_epoch(self, epoch: int) -> None:
        """Tell the network which epoch (1, 2, …) is about to begin."""

    def auxiliary_loss(self) -> Tensor:
        """A scalar to add to the task loss of the last training forward."""
        return torch.zeros((), device=next(self.parameters()).device)


class ForecastNetwork(Backbone):
    """`[B, L, C]` (and calendar `[B, L + H, 4]`) to `[B, H, C]`, by default by `self.network`."""

    task: TaskName = "forecasting"
    calendar_sizes: tuple[int, ...] | None = None
    network: nn.Module

    def __init__(self, *, input_len: int, horizon: int, channels: int) -> None:
        super().__init__(input_len=input_len, channels=channels)
        self.check_size(horizon=horizon)
        self.horizon = horizon

    def check_window(self, x: Tensor, stamps: Tensor | None = None) -> None:
        """Refuse other windows, and stamps that do not fit the tables of `calendar_sizes`."""
        super().check_window(x)
        name, sizes = type(self).__name__, self.calendar_sizes
        shape = [x.shape[0], self.input_len + self.horizon, 4]  # len(x) would fix it in exports
        if stamps is not None and sizes is None:
            raise ArgumentError(
                f"{name} has no calendar tables: build it with calendar_sizes=(steps a day, 7, 31, "
                "366), or pass no stamps."
            )
        if sizes is not None and (stamps is None or list(stamps.shape) != shape):
            given = "none" if stamps is None else list(stamps.shape)
            raise ArgumentError(
                f"{name} with calendar_sizes={sizes} needs stamps {shape}, got {given}."
            )

    def forward(self, x: Tensor, stamps: Tensor | None = None) -> Tensor:
        self.check_window(x, stamps)
        return self.network(x)


class ClassifierNetwork(Backbone):
    """`[B, L, C]` to logits `[B, K]`."""

    task: TaskName = "classification"

    def __init__(self, *, input_len: int, channels: int, classes: int) -> None:
        super().__init__(input_len=input_len, channels=channels)
        self.check_size(least=2, classes=classes)
        self.classes = classes


class DetectorNetwork(Backbone):
    """An anomaly detector: its own loss, its own score, each calling `forward` exactly once."""

    task: TaskName = "anomaly"

    def check_score(self, score: str) -> None:
        if score not in get_args(ScoreKind):
            raise ArgumentError(
                f"unknown score {score!r}: choose one of {', '.join(get_args(ScoreKind))}."
            )

    @abstractmethod
    def training_loss(self, x: Tensor) -> Tensor:
        """Scalar to minimise on windows `[B, L, C]`."""

    def validation_loss(self, x: Tensor) -> Tensor:
        """Scalar to choose a checkpoint by, without labels; the training loss by default."""
        return self.training_loss(x)

    @abstractmethod
    def anomaly_scores(self, x: Tensor, *, score: ScoreKind = "native") -> Tensor:
        """Per-step scores `[B, L]`; higher is more anomalous."""


class ReconstructionDetector(DetectorNetwork):
    """A detector that rebuilds its window, by default by `self.network`; its error is the score."""

    network: nn.Module

    def forward(self, x: Tensor) -> Tensor:
        self.check_window(x)
        return self.network(x)

    def training_loss(self, x: Tensor) -> Tensor:
        return (self(x) - x).abs().mean()

    def anomaly_scores(self, x: Tensor, *, score: ScoreKind = "native") -> Tensor:
        self.check_score(score)
        return (self(x) - x).abs().mean(dim=-1)


def require_fitted(module: nn.Module, buffer: Tensor) -> None:
    """Refuse to run before `prepare` or a checkpoint has filled `buffer`, full of NaN at first."""
    if getattr(module, "_fitted", False):  # only the first call waits for the device
        return
    if bool(buffer.isnan().any()):
        raise ArgumentError(
            f"{type(module).__name__} has seen no training data: call prepare(train_x) with "
            "windows [N, L, C] of the training part, or load a checkpoint first."
        )
    module._fitted = True  # type: ignore[assignment]  # a plain flag, not a Tensor or Module
