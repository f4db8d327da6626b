"""Every registered network as a test case, and how to build, feed and read one."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sacm import backbones
from sacm.backbones.base import Backbone, DetectorNetwork, ForecastNetwork
from sacm.backbones.registry import Size, entry
from sacm.types import TaskName

CALENDAR = (24, 7, 31, 366)
WITH_CALENDAR = ("Informer", "TimesNet")


@dataclass(frozen=True)
class Case:
    name: str
    task: TaskName

    def __str__(self) -> str:
        return f"{self.name}-{self.task}"


def cases(task: TaskName | None = None) -> list[Case]:
    """The networks of this package; a test may have registered others."""
    return [
        Case(name, each)
        for each in (get_args(TaskName) if task is None else (task,))
        for name in backbones.names(each)
        if entry(name, each).model.__module__.startswith("sacm.")
    ]


every_case = pytest.mark.parametrize("case", cases(), ids=str)
every_forecaster = pytest.mark.parametrize("case", cases("forecasting"), ids=str)
every_detector = pytest.mark.parametrize("case", cases("anomaly"), ids=str)


def windows(batch: int, *, length: int = 96, channels: int = 3, seed: int = 0) -> Tensor:
    """Sines of random period and phase with noise, `[B, L, C]`."""
    generator = torch.Generator().manual_seed(seed)
    time = torch.arange(length)[None, :, None]
    period = 6 + 20 * torch.rand(batch, 1, channels, generator=generator)
    phase = 6.28 * torch.rand(batch, 1, channels, generator=generator)
    noise = 0.3 * torch.randn(batch, length, channels, generator=generator)
    return torch.sin(6.28 * time / period + phase) + noise


def make(
    case: Case,
    *,
    length: int = 96,
    channels: int = 3,
    horizon: int = 24,
    classes: int = 4,
    size: Size = "small",
    prepare: bool = True,
    seed: int = 0,
    **settings: Any,
) -> Backbone:
    """A network ready to train; weights depend on `seed` alone."""
    torch.manual_seed(seed)
    sizes = {
        "forecasting": {"horizon": horizon},
        "classification": {"classes": classes},
        "anomaly": {},
    }[case.task]
    model = backbones.build(
        case.name,
        case.task,
        input_len=length,
        channels=channels,
        size=size,
        **sizes,
        **settings,
    )
    if prepare:
        model.prepare(windows(16, length=length, channels=channels, seed=99))
    return model


@functools.cache
def shared(case: Case) -> Backbone:
    """One network of a case for all tests that leave its weights alone; set its mode before use."""
    return make(case)


def training_loss(model: Backbone, x: Tensor, stamps: Tensor | None = None) -> Tensor:
    """The loss of one training step against arbitrary, fixed targets."""
    if isinstance(model, DetectorNetwork):
        loss = model.training_loss(x)
    elif isinstance(model, ForecastNetwork):
        loss = (model(x, stamps) - x.mean(dim=1, keepdim=True) - 0.5).abs().mean()
    else:
        logits = model(x)
        labels = torch.arange(len(x)).clamp(max=logits.shape[1] - 1)  # unbalanced on purpose
        loss = F.cross_entropy(logits, labels)
    return loss + model.auxiliary_loss()


def evaluate(model: Backbone, x: Tensor, stamps: Tensor | None = None) -> list[Tensor]:
    """Everything the network says of `x` in evaluation mode, each `[B, ...]`."""
    model.eval()
    with torch.no_grad():
        outputs = list(flatten(model(x) if stamps is None else model(x, stamps)))
        if isinstance(model, DetectorNetwork):
            outputs.append(model.anomaly_scores(x))
    return outputs


def flatten(output: Any) -> Iterator[Tensor]:
    if isinstance(output, Tensor):
        yield output
    else:
        for part in output:
            yield from flatten(part)


def assert_close(found: list[Tensor], expected: list[Tensor], *, tolerance: float) -> None:
    assert len(found) == len(expected) > 0
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=tolerance, rtol=tolerance)


def dropouts(model: nn.Module) -> dict[str, nn.Dropout]:
    return {name: each for name, each in model.named_modules() if isinstance(each, nn.Dropout)}
