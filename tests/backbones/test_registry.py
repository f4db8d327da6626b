from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from sacm import backbones
from sacm.errors import ArgumentError
from sacm.registry import temporary_entries
from tests.testing.test_backbones import Config, Good

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


@pytest.fixture
def own() -> Iterator[type[Good]]:
    with temporary_entries():
        yield backbones.register("Linear", paper=Config(), small=Config(0.1))(Good)


def test_names_in_order_and_by_task() -> None:
    assert backbones.names("forecasting")[:9] == FORECASTING
    assert backbones.names("classification")[3:6] == ["NSFormer", "InceptionTime", "MiniROCKET"]
    assert backbones.names("anomaly")[4:7] == ["AnomTrans", "TranAD", "DCdetector"]
    assert backbones.names()[:9] == FORECASTING


def test_own_network_builds_by_name_in_any_case(own: type[Good]) -> None:
    assert backbones.names("forecasting")[-1] == "Linear"
    model = backbones.build(
        "LINEAR", "forecasting", input_len=8, horizon=2, channels=3, size="small"
    )
    assert isinstance(model, Good)
    assert model.dropout.p == 0.1
    assert model(torch.zeros(4, 8, 3)).shape == (4, 2, 3)
    assert model.auxiliary_loss() == 0


def test_overrides_replace_settings(own: type[Good]) -> None:
    model = backbones.build(
        "Linear", "forecasting", input_len=8, horizon=2, channels=3, dropout=0.4
    )
    assert model.dropout.p == 0.4


def test_a_name_is_taken_once(own: type[Good]) -> None:
    class Other(Good):
        pass

    with pytest.raises(ArgumentError, match="already registered for forecasting"):
        backbones.register("linear", paper=Config(), small=Config())(Other)
    backbones.register("Linear", paper=Config(), small=Config())(Good)  # reloaded


def test_description(own: type[Good]) -> None:
    found = backbones.describe("linear", "forecasting")
    assert (found.name, found.size, found.cost) == ("Linear", "paper", "light")
    assert (found.parameters, found.dropout_sites) == (97 * 96, 1)
    assert found.config == Config()


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
