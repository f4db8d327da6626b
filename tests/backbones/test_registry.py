from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

from sacm import backbones
from sacm.errors import ArgumentError
from sacm.registry import temporary_entries

FORECASTING = [
    "Informer",
    "Crossformer",
    "PatchTST",
    "TimesNet",
    "iTransformer",
    "TimeMixer",
    "WPMixer",
    "TimeFilter",
    "MultiPatchFormer",
]


@dataclass(frozen=True)
class LinearConfig:
    dropout: float = 0.2


class Linear(backbones.ForecastNetwork):
    """One Linear over time."""

    def __init__(
        self, config: LinearConfig, *, input_len: int, horizon: int, channels: int
    ) -> None:
        super().__init__(input_len=input_len, horizon=horizon, channels=channels)
        self.dropout = nn.Dropout(config.dropout)
        self.head = nn.Linear(input_len, horizon)
        self.state_layouts()

    def forward(self, x: Tensor, stamps: Tensor | None = None) -> Tensor:
        self.check_window(x)
        return self.head(self.dropout(x.transpose(1, 2))).transpose(1, 2)


@pytest.fixture
def own() -> Iterator[type[Linear]]:
    with temporary_entries():
        yield backbones.register("Linear", paper=LinearConfig(), small=LinearConfig(0.1))(Linear)


def test_names_in_order_and_by_task() -> None:
    assert backbones.names("forecasting")[:9] == FORECASTING
    assert backbones.names("classification")[3:6] == ["NSFormer", "InceptionTime", "MiniROCKET"]
    assert backbones.names("anomaly")[4:7] == ["AnomTrans", "TranAD", "DCdetector"]
    assert backbones.names()[:9] == FORECASTING


def test_own_network_builds_by_name_in_any_case(own: type[Linear]) -> None:
    assert backbones.names("forecasting")[-1] == "Linear"
    model = backbones.build(
        "LINEAR", "forecasting", input_len=8, horizon=2, channels=3, size="small"
    )
    assert isinstance(model, Linear)
    assert model.dropout.p == 0.1
    assert model(torch.zeros(4, 8, 3)).shape == (4, 2, 3)
    assert model.auxiliary_loss() == 0


def test_overrides_replace_settings(own: type[Linear]) -> None:
    model = backbones.build(
        "Linear", "forecasting", input_len=8, horizon=2, channels=3, dropout=0.4
    )
    assert model.dropout.p == 0.4


def test_a_name_is_taken_once(own: type[Linear]) -> None:
    class Other(Linear):
        pass

    with pytest.raises(ArgumentError, match="already registered for forecasting"):
        backbones.register("linear", paper=LinearConfig(), small=LinearConfig())(Other)
    backbones.register("Linear", paper=LinearConfig(), small=LinearConfig())(Linear)  # reloaded


def test_description(own: type[Linear]) -> None:
    found = backbones.describe("linear", "forecasting")
    assert (found.name, found.size, found.cost) == ("Linear", "paper", "light")
    assert (found.parameters, found.dropout_sites) == (97 * 96, 1)
    assert found.config == LinearConfig()


def test_describing_leaves_the_random_numbers_alone() -> None:
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    backbones.describe("PatchTST", "forecasting")
    assert torch.equal(torch.rand(3), expected)


def test_unknown_names() -> None:
    with pytest.raises(ArgumentError, match="Did you mean 'PatchTST'"):
        backbones.build("PatchTTS", "forecasting", input_len=96, horizon=96, channels=7)
    with pytest.raises(ArgumentError, match="serves another task"):
        backbones.build("TranAD", "forecasting", input_len=96, horizon=96, channels=7)
    with pytest.raises(ArgumentError, match="unknown task"):
        backbones.names("regression")
    with pytest.raises(ArgumentError, match="unknown size"):
        backbones.build("PatchTST", "anomaly", input_len=96, channels=7, size="tiny")
    with pytest.raises(ArgumentError, match="needs horizon"):
        backbones.build("PatchTST", "forecasting", input_len=96, channels=7)
