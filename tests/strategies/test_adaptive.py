"""The method, and the one learned rate it is compared with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from sacm.core.config import SACMConfig
from sacm.core.mapper import QuantileMapper
from sacm.errors import ArgumentError
from sacm.registry import temporary_entries
from sacm.strategies import canonical, mappers, parse, scorers
from sacm.strategies.adaptive import CalibratedRun, FittedSACM
from sacm.testing.strategy_cases import series

from .cases import Net, batches, context


def test_sacm_is_the_method_with_its_settings() -> None:
    model = Net()
    run = parse("sacm(p_max=0.3,detrend=endpoint,skip=second)").begin(model, context())
    model(torch.randn(8, 16, 2))
    assert len([p for p in run.scalars() if p.numel()]) == 4
    rates = run.rates()
    assert rates is not None
    assert float(rates.max()) <= 0.3
    assert type(model.second) is nn.Dropout


def test_learned_global_is_one_rate_for_all_that_learns() -> None:
    model = Net()
    run = parse("learned_global").begin(model, context())
    model(torch.randn(8, 16, 2)).square().mean().backward()
    assert torch.allclose(run.rates(), torch.full((8,), 0.1))
    (logit,) = run.scalars()
    assert logit.grad is not None
    assert float(logit.grad.abs()) > 0
    with torch.no_grad():
        logit.fill_(100.0)
    model(torch.randn(8, 16, 2))
    assert torch.allclose(run.rates(), torch.full((8,), 0.5))


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
    rates = run.rates()
    assert rates is not None
    assert torch.equal(rates, torch.where(x.mean(dim=1).sum(dim=1) < 0, 0.05, 0.4))
    assert sum(p.numel() for p in run.scalars()) == 2


def test_a_registered_scorer_feeds_the_methods_own_mapper(registered: None) -> None:
    model = Net()
    run = parse("sacm(scorer=level)").begin(model, context())
    x = torch.randn(8, 16, 2, generator=torch.Generator().manual_seed(0))
    model(x).square().mean().backward()
    rates = run.rates()
    assert rates is not None
    assert torch.equal(rates.argsort(), x.mean(dim=1).sum(dim=1).argsort())
    weight = run.scalars()[0]
    assert weight.grad is not None
    assert float(weight.grad.abs().max()) > 0


def test_the_methods_own_parts_are_not_spelled_out() -> None:
    assert canonical("sacm(scorer=spectral, mapper=tanh)") == "sacm"
    assert scorers.names()[0] == "spectral"
    assert mappers.names()[0] == "tanh"


@pytest.mark.parametrize("part", ["scorer", "mapper"])
def test_an_unknown_part_is_named_with_the_known_ones(part: str) -> None:
    with pytest.raises(ArgumentError, match=rf"there is no {part} 'spectrl'\..* Known: "):
        parse(f"sacm({part}=spectrl)")


def test_a_score_by_quality_sees_a_stuck_channel_that_the_spectrum_trusts() -> None:
    data = series()
    fitted = parse("sacm(score=quality)").prepare(data, window=48).strategy
    assert isinstance(fitted, FittedSACM)
    scorer = fitted.make_scorer(2)
    time = torch.arange(48.0) + torch.tensor([[0.0], [50.0], [90.0]])
    windows = torch.stack([torch.sin(time / 5), torch.cos(time / 9)], dim=2)
    windows = windows + 0.1 * torch.randn(windows.shape, generator=torch.Generator().manual_seed(0))
    stuck = windows.clone()
    stuck[:, 8:, 0] = stuck[:, 8:9, 0]
    plain = parse("sacm").make_scorer(2)
    assert (plain(stuck).scores < plain(windows).scores).all()
    assert (scorer(stuck).scores > scorer(windows).scores).all()


def test_options_of_the_method_keep_its_spelling_and_refuse_what_has_no_meaning() -> None:
    spelling = "sacm(scale=data,calibration=batch,per_channel=false,score=spectral)"
    assert canonical(spelling) == "sacm"
    for text, message in (
        ("sacm(scale=none)", "scale must be one of"),
        ("sacm(calibration=global)", "calibration"),
        ("sacm(score=luck)", "score"),
        ("sacm+learned_global", "both set the dropout rates"),
    ):
        with pytest.raises(ArgumentError, match=message):
            parse(text)
    with pytest.raises(ArgumentError, match=r"score=quality\) is for forecasting"):
        parse("sacm(score=quality)").check_task("anomaly")


def test_calibration_scores_all_training_windows_before_an_epoch() -> None:
    model = Net()
    run = parse("sacm(calibration=quantiles)").begin(model, context())
    run.begin_epoch(1)
    assert isinstance(run, CalibratedRun)
    with torch.no_grad():
        scores = torch.cat([run.modulator.scorer(batch.x).scores for batch in batches()])
    expected = torch.quantile(scores, torch.tensor([0.05, 0.95]))
    assert isinstance(run.modulator.mapper, QuantileMapper)
    torch.testing.assert_close(run.modulator.mapper.quantiles, expected, rtol=0.05, atol=0.005)
