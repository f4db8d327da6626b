from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import sacm
from sacm.backbones.adapters import CovariateAdapter
from sacm.backbones.base import ForecastNetwork
from sacm.backbones.registry import build, describe
from sacm.errors import ArgumentError

LENGTH, HORIZON, CHANNELS, PAST, COUNT = 16, 4, 2, 1, 3


def make_adapter(name: str = "PatchTST") -> CovariateAdapter:
    torch.manual_seed(0)
    network = build(
        name,
        "forecasting",
        size="small",
        input_len=LENGTH,
        channels=CHANNELS,
        horizon=HORIZON,
    )
    assert isinstance(network, ForecastNetwork)
    return CovariateAdapter(network, past=PAST, mean=[1.0, 2.0, 3.0], std=[2.0, 1.0, 1.0])


def train_a_little(model: nn.Module, x: Tensor, covariates: Tensor) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(3):
        optimizer.zero_grad()
        (model(x, None, covariates) - covariates[:, LENGTH:, 1:]).abs().mean().backward()
        optimizer.step()


@pytest.fixture(scope="module")
def batch() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(5, LENGTH, CHANNELS, generator=generator)
    return x, torch.randn(5, LENGTH + HORIZON, COUNT, generator=generator)


def test_a_fresh_adapter_forecasts_what_its_network_does(batch: tuple[Tensor, Tensor]) -> None:
    model = make_adapter().eval()
    torch.testing.assert_close(
        model(batch[0], None, batch[1]), model.network(batch[0]), rtol=0, atol=0
    )


def test_all_its_parts_learn(batch: tuple[Tensor, Tensor]) -> None:
    model = make_adapter()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    train_a_little(model, *batch)
    own = [name for name in before if not name.startswith("network.")]
    assert len(own) == 7
    assert all(not torch.equal(before[name], model.state_dict()[name]) for name in own)


def test_the_future_counts_for_known_covariates_alone(batch: tuple[Tensor, Tensor]) -> None:
    x, covariates = batch
    model = make_adapter()
    train_a_little(model, x, covariates)
    model.eval()
    usual = model(x, None, covariates)
    unknown, known = covariates.clone(), covariates.clone()
    unknown[:, LENGTH:, :PAST] = 1e3
    known[:, LENGTH:, PAST:] += 1
    torch.testing.assert_close(model(x, None, unknown), usual, rtol=0, atol=0)
    assert not torch.allclose(model(x, None, known), usual)


@pytest.mark.parametrize("name", ["PatchTST", "iTransformer"])
def test_attach_makes_the_same_sites_adaptive(name: str, batch: tuple[Tensor, Tensor]) -> None:
    plain, model = make_adapter(name).network, make_adapter(name)
    x, covariates = batch
    sites = sacm.attach(plain, channels=CHANNELS, example_inputs=(x,)).sites
    found = sacm.attach(model, channels=CHANNELS, example_inputs=(x, None, covariates)).sites
    assert [site.name for site in found] == [f"network.{site.name}" for site in sites]
    model.train()(x, None, covariates).sum().backward()


def test_missing_and_misshapen_covariates_are_refused(batch: tuple[Tensor, Tensor]) -> None:
    model = make_adapter()
    with pytest.raises(ArgumentError, match=r"needs covariates \[5, 20, 3\], got none"):
        model(batch[0])
    with pytest.raises(ArgumentError, match=r"got \[5, 20, 2\]"):
        model(batch[0], None, batch[1][..., :2])


def test_backbones_say_whether_they_read_the_calendar() -> None:
    reading = {
        name
        for name in sacm.backbones.names("forecasting")
        if describe(name, "forecasting", size="small").calendar
    }
    assert reading == {"Informer", "TimesNet"}
