"""Controls of the method, with scores that are forced."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from sacm import RateMapper, SACMConfig
from sacm.errors import ArgumentError
from sacm.strategies import canonical, parse

from .cases import Net, context


class Forced(nn.Module):
    """Gives the first value of each window as its score."""

    def forward(self, x: Tensor) -> Tensor:
        return x[:, 0, 0]


def rates_of(strategy: str) -> Tensor:
    """The rates that a strategy gives to eight windows with the scores 0 to 7."""
    model = Net()
    run = parse(strategy).begin(model, context())
    run.modulator.scorer = Forced()
    windows = torch.zeros(8, 16, 2)
    windows[:, 0, 0] = torch.arange(8.0)
    model(windows)
    rates = run.rates()
    assert rates is not None
    return rates


def own_rates() -> Tensor:
    return RateMapper(SACMConfig())(torch.arange(8.0)).detach()


def test_permuted_rates_are_the_same_rates_in_another_order() -> None:
    torch.manual_seed(0)
    rates = rates_of("sacm(rates=permuted)")
    assert torch.equal(rates.sort().values, own_rates().sort().values)
    assert not torch.equal(rates, own_rates())
    assert not torch.equal(rates, rates_of("sacm(rates=permuted)"))


def test_mean_rate_is_that_of_the_batch_for_every_window() -> None:
    assert torch.allclose(rates_of("sacm(rates=mean)"), own_rates().mean().expand(8))


def test_reversed_rates_give_the_most_reliable_window_the_highest() -> None:
    assert torch.equal(rates_of("sacm(rates=reversed)"), own_rates().flip(0))


def test_amplitude_score_is_the_deviation_of_the_window() -> None:
    model = Net()
    run = parse("sacm(score=amplitude)").begin(model, context())
    wave = torch.sin(torch.arange(16.0))[None, :, None]
    model(torch.tensor([1.0, 3.0, 2.0, 0.0])[:, None, None] * wave.expand(4, 16, 2) + 5)
    rates = run.rates()
    assert rates is not None
    assert rates.argsort().tolist() == [3, 0, 2, 1]
    assert float(rates[3]) == pytest.approx(0.05)


@pytest.mark.parametrize("name", ["permuted", "mean", "reversed"])
def test_gradients_reach_the_scalars_through_the_rearranged_rates(name: str) -> None:
    model = Net()
    run = parse(f"sacm(rates={name})").begin(model, context())
    model(torch.randn(8, 16, 2)).square().mean().backward()
    gamma = run.modulator.mapper.gamma
    assert gamma.grad is not None
    assert float(gamma.grad.abs()) > 0


def test_controls_have_one_spelling_and_refuse_what_they_cannot_be_combined_with() -> None:
    assert canonical("sacm(rates=own,score=spectral)") == "sacm"
    with pytest.raises(ArgumentError, match="own, permuted, mean, reversed"):
        parse("sacm(rates=sorted)")
    with pytest.raises(ArgumentError, match="calibration=batch"):
        parse("sacm(rates=mean,calibration=quantiles)")
