"""What each network is at paper size, stated in its own test file; a wrong layer shows here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from sacm import backbones
from sacm.testing.backbones import BackboneCase, dropouts, make, training_loss, windows
from sacm.types import TaskName


class Size(NamedTuple):
    """Sizes that a network is counted at; with the steps of a day, it has calendar tables."""

    length: int
    channels: int
    horizon: int | None = None
    steps_a_day: int | None = None


@dataclass(frozen=True)
class Expectation:
    """Dropout rates with their number of sites, calls of sites in a forward, parameters."""

    name: str
    task: TaskName
    rates: dict[float, int]
    calls: int
    parameters: dict[Size, int]

    def __str__(self) -> str:
        return self.task


def check_sites(expected: Expectation) -> None:
    """Sites at paper size: how many at which rate, and how often they are called."""
    case = BackboneCase(expected.name, expected.task)
    length = 100 if case.task == "anomaly" else 96
    model = make(case, length=length, channels=7, horizon=96, size="paper")
    rates = [module.p for module in dropouts(model).values()]
    assert {rate: rates.count(rate) for rate in set(rates)} == expected.rates
    calls: list[str] = []
    for name, module in dropouts(model).items():
        module.register_forward_hook(lambda *_, name=name: calls.append(name))
    with torch.no_grad():
        training_loss(model, windows(1, length=length, channels=7))
    assert len(calls) == expected.calls
    assert set(calls) == set(dropouts(model))


def check_parameters(expected: Expectation) -> None:
    """Trainable parameters at paper size."""
    for size, count in expected.parameters.items():
        sizes: dict[str, Any] = {"input_len": size.length, "channels": size.channels}
        if size.horizon is not None:
            sizes["horizon"] = size.horizon
        if size.steps_a_day is not None:
            sizes["calendar_sizes"] = (size.steps_a_day, 7, 31, 366)
        if expected.task == "classification":
            sizes["classes"] = 5
        model = backbones.build(expected.name, expected.task, **sizes)
        assert sum(p.numel() for p in model.parameters() if p.requires_grad) == count, size
