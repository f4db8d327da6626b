"""`check_backbone` finds what is wrong with a backbone, and says it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

from sacm import backbones
from sacm.errors import ArgumentError
from sacm.registry import temporary_entries
from sacm.testing import check_backbone


@dataclass(frozen=True)
class Config:
    dropout: float = 0.2


class Good(backbones.ForecastNetwork):
    """One Linear over time, behind a dropout."""

    def __init__(self, config: Config, *, input_len: int, horizon: int, channels: int) -> None:
        super().__init__(input_len=input_len, horizon=horizon, channels=channels)
        self.dropout = nn.Dropout(config.dropout)
        self.head = nn.Linear(input_len, horizon)
        self.state_layouts()

    def forward(self, x: Tensor, stamps: Tensor | None = None) -> Tensor:
        self.check_window(x, stamps)
        forecast: Tensor = self.head(self.dropout(x.transpose(1, 2))).transpose(1, 2)
        return forecast


class Mixing(Good):
    """Adds the mean of the batch."""

    def forward(self, x: Tensor, stamps: Tensor | None = None) -> Tensor:
        forecast = super().forward(x, stamps)
        return forecast + forecast.mean(dim=0)


class Idle(Good):
    """Has a layer that nothing uses."""

    def __init__(self, config: Config, **sizes: int) -> None:
        super().__init__(config, **sizes)
        self.idle = nn.Linear(2, 2)


class Random(Good):
    """Is random in evaluation."""

    def forward(self, x: Tensor, stamps: Tensor | None = None) -> Tensor:
        return super().forward(x, stamps) + 1e-3 * torch.rand(())


class Unstated(Good):
    """Does not state its layouts."""

    def __init__(self, config: Config, **sizes: int) -> None:
        super().__init__(config, **sizes)
        self.sacm_layouts = {}


class Wrong(Good):
    """Has channels where steps should be."""

    def forward(self, x: Tensor, stamps: Tensor | None = None) -> Tensor:
        return super().forward(x, stamps).transpose(1, 2)


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    with temporary_entries():
        yield


def register(model: type[backbones.Backbone]) -> type[backbones.Backbone]:
    return backbones.register("Mine", paper=Config(), small=Config(0.1))(model)


def test_a_good_backbone_passes_in_any_letter_case() -> None:
    register(Good)
    check_backbone("mine", task="forecasting")


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (Mixing, "window 0 of a batch of 7 gives another output alone"),
        (Idle, "idle.weight gets no gradient"),
        (Random, "gives another output alone|two evaluations differ"),
        (Unstated, r"call self.state_layouts\(\) at the end of __init__"),
        (Wrong, r"the output is \(1, 3, 24\) instead of \(1, 24, 3\)"),
    ],
)
def test_what_is_wrong_is_said(model: type[backbones.Backbone], sentence: str) -> None:
    register(model)
    with pytest.raises(AssertionError, match=rf"^Mine for forecasting: .*({sentence})"):
        check_backbone("Mine")


def test_what_is_not_registered_cannot_be_checked() -> None:
    with pytest.raises(ArgumentError, match="no backbone 'Mine'"):
        check_backbone("Mine")


def test_checking_leaves_the_random_numbers_alone() -> None:
    register(Good)
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    check_backbone("Mine")
    assert torch.equal(torch.rand(3), expected)


class Raising(Good):
    """Takes one window at a time."""

    def forward(self, x: Tensor, stamps: Tensor | None = None) -> Tensor:
        return super().forward(x.view(1, self.input_len, self.channels), stamps)


def test_an_error_of_the_backbone_is_an_assertion_that_names_the_check() -> None:
    register(Raising)
    with pytest.raises(AssertionError, match="Mine for forecasting: RuntimeError: "):
        check_backbone("Mine")
