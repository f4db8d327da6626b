"""A registered backbone under test: how to build, feed and read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sacm.backbones.base import Backbone, DetectorNetwork, ForecastNetwork
from sacm.backbones.registry import build, entry, has_tables
from sacm.errors import ArgumentError
from sacm.types import Size, TaskName

CALENDAR = (24, 7, 31, 366)


@dataclass(frozen=True)
class BackboneCase:
    """A backbone for one task, by name."""

    name: str
    task: TaskName

    def __str__(self) -> str:
        return f"{self.name}-{self.task}"

    @property
    def has_calendar(self) -> bool:
        """Whether the network can be built with calendar tables."""
        return has_tables(entry(self.name, self.task).model)

    def require(self, condition: Any, sentence: str) -> None:
        """Raise an AssertionError that names the backbone, unless the condition holds."""
        if not bool(condition):
            raise AssertionError(f"{self.name} for {self.task}: {sentence}.")

    def require_refusal(self, action: Callable[[], object], *words: str, of: str) -> None:
        """Require an ArgumentError whose message holds all `words`; `of` says what is wrong."""
        try:
            action()
        except ArgumentError as error:
            missing = [word for word in words if word not in str(error)]
            self.require(not missing, f"the refusal of {of} should say {missing}, but says {error}")
        else:
            self.require(False, f"{of} must be refused with an ArgumentError")


def make(
    case: BackboneCase,
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
    """Build a network that is ready to train; its weights depend on `seed` alone."""
    torch.manual_seed(seed)
    sizes: dict[TaskName, dict[str, Any]] = {
        "forecasting": {"horizon": horizon},
        "classification": {"classes": classes},
        "anomaly": {},
    }
    model = build(
        case.name,
        case.task,
        input_len=length,
        channels=channels,
        size=size,
        **sizes[case.task],
        **settings,
    )
    if prepare:
        model.prepare(windows(16, length=length, channels=channels, seed=99))
    return model


def windows(batch: int, *, length: int = 96, channels: int = 3, seed: int = 0) -> Tensor:
    """Make sines of random period and phase with noise, `[B, L, C]`."""
    generator = torch.Generator().manual_seed(seed)
    time = torch.arange(length)[None, :, None]
    period = 6 + 20 * torch.rand(batch, 1, channels, generator=generator)
    phase = 6.28 * torch.rand(batch, 1, channels, generator=generator)
    noise = 0.3 * torch.randn(batch, length, channels, generator=generator)
    return torch.sin(6.28 * time / period + phase) + noise


def training_loss(model: Backbone, x: Tensor, stamps: Tensor | None = None) -> Tensor:
    """Compute the loss of one training step against arbitrary, fixed targets."""
    loss: Tensor
    if isinstance(model, DetectorNetwork):
        loss = model.training_loss(x)
    elif isinstance(model, ForecastNetwork):
        loss = (model(x, stamps) - x.mean(dim=1, keepdim=True) - 0.5).abs().mean()
    else:
        logits = model(x)
        labels = torch.arange(len(x)).clamp(max=logits.shape[1] - 1)  # unbalanced on purpose
        loss = F.cross_entropy(logits, labels)
    return loss + model.auxiliary_loss()


def evaluate_network(model: Backbone, x: Tensor, stamps: Tensor | None = None) -> list[Tensor]:
    """Give everything the network says of `x` in evaluation mode, each `[B, ...]`."""
    model.eval()
    with torch.no_grad():
        outputs = list(flatten(model(x) if stamps is None else model(x, stamps)))
        if isinstance(model, DetectorNetwork):
            outputs.append(model.anomaly_scores(x))
    return outputs


def flatten(output: Any) -> Iterator[Tensor]:
    """Give the tensors of a nested output."""
    if isinstance(output, Tensor):
        yield output
    else:
        for part in output:
            yield from flatten(part)


def are_close(found: list[Tensor], expected: list[Tensor], *, tolerance: float) -> bool:
    """Compare two lists of tensors, absolutely and relatively; 0 asks for equality."""
    return len(found) == len(expected) > 0 and all(
        one.shape == other.shape and torch.allclose(one, other, atol=tolerance, rtol=tolerance)
        for one, other in zip(found, expected, strict=True)
    )


def dropouts(model: nn.Module) -> dict[str, nn.Dropout]:
    """Find the dropout sites of a network by name."""
    return {name: each for name, each in model.named_modules() if isinstance(each, nn.Dropout)}
