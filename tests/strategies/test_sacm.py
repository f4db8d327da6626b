"""The method, its controls, and the one learned rate it is compared with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from sacm import RateMapper, SACMConfig
from sacm.errors import ArgumentError
from sacm.registry import temporary_entries
from sacm.strategies import canonical, mappers, parse, scorers

from .cases import Net, context


def test_sacm_is_the_method_with_its_settings() -> None:
    model = Net()
    run = parse("sacm(p_max=0.3,detrend=endpoint,skip=second)").begin(model, context())
    model(torch.randn(8, 16, 2))
    assert len([p for p in run.scalars if p.numel()]) == 4
    rates = run.rates
    assert rates is not None
    assert float(rates.max()) <= 0.3
    assert type(model.second) is nn.Dropout


@pytest.mark.lab
def test_learned_global_is_one_rate_for_all_that_learns() -> None:
    model = Net()
    run = parse("learned_global").begin(model, context())
    model(torch.randn(8, 16, 2)).square().mean().backward()
    assert torch.allclose(run.rates, torch.full((8,), 0.1))
    (logit,) = run.scalars
    assert logit.grad is not None
    assert float(logit.grad.abs()) > 0
    with torch.no_grad():
        logit.fill_(100.0)
    model(torch.randn(8, 16, 2))
    assert torch.allclose(run.rates, torch.full((8,), 0.5))


class Level(nn.Module):
    """Scores a window by its mean."""

    def __init__(self, channels: int, config: SACMConfig) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))

    def forward(self, x: Tensor) -> Tensor:
        return (x.mean(dim=1) * self.weight).sum(dim=1)


class TwoRates(nn.Module):
    """The lowest rate for negative scores, the highest for the others."""

    def __init__(self, config: SACMConfig) -> None:
        super().__init__()
        self.low, self.high = config.p_min, config.p_max

    def forward(self, scores: Tensor, reliable: Tensor | None = None) -> Tensor:
        return torch.where(scores < 0, self.low, self.high)


@pytest.fixture
def registered() -> Iterator[None]:
    with temporary_entries():
        scorers.register("level")(Level)
        mappers.register("two_rates")(TwoRates)
        yield


def test_a_registered_scorer_and_mapper_are_options_of_sacm(registered: None) -> None:
    text = "sacm(scorer=Level, mapper=TWO_RATES, p_max=0.4)"
    assert canonical(text) == "sacm(p_max=0.4,scorer=level,mapper=two_rates)"
    model = Net()
    run = parse(text).begin(model, context())
    x = torch.randn(8, 16, 2, generator=torch.Generator().manual_seed(0))
    model(x)
    rates = run.rates
    assert rates is not None
    assert torch.equal(rates, torch.where(x.mean(dim=1).sum(dim=1) < 0, 0.05, 0.4))
    assert sum(p.numel() for p in run.scalars) == 2


def test_the_methods_own_parts_are_not_spelled_out() -> None:
    assert canonical("sacm(scorer=spectral, mapper=tanh)") == "sacm"
    assert scorers.names()[0] == "spectral"
    assert mappers.names()[0] == "tanh"


@pytest.mark.parametrize("part", ["scorer", "mapper"])
def test_an_unknown_part_is_named_with_the_known_ones(part: str) -> None:
    with pytest.raises(ArgumentError, match=rf"there is no {part} 'spectrl'\..* Known: "):
        parse(f"sacm({part}=spectrl)")


def test_options_of_the_method_keep_its_spelling_and_refuse_what_has_no_meaning() -> None:
    assert canonical("sacm(score=spectral,rates=own)") == "sacm"
    for text, message in (
        ("sacm(score=luck)", "score"),
        ("sacm(rates=sorted)", "own, permuted, mean, reversed"),
    ):
        with pytest.raises(ArgumentError, match=message):
            parse(text)


@pytest.mark.lab
def test_two_strategies_that_set_rates_are_refused() -> None:
    with pytest.raises(ArgumentError, match="both set the dropout rates"):
        parse("sacm+learned_global")


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
    rates = run.rates
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
    rates = run.rates
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
