"""Forecasts that need no gradient: what they say of series whose future is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from sacm.backbones.statistical import (
    STATISTICAL,
    Logarithms,
    LowerLimit,
    MeanForecaster,
    SeasonalNaive,
    SmoothingForecaster,
    line_and_season,
)

LENGTH, HORIZON, SEASON = 60, 12, 12
SIZES = {"input_len": LENGTH, "horizon": HORIZON, "channels": 2, "season": SEASON}
EXTRAPOLATE = ["exponential smoothing", "Theta", "seasonal naive"]


def growing(steps: torch.Tensor) -> torch.Tensor:
    """A line and a season, `[1, T, 2]`; the second channel is ten times the first."""
    values = 20 + 0.3 * steps + 4 * torch.sin(2 * math.pi * steps / SEASON)
    return torch.stack([values, 10 * values], dim=-1)[None]


@pytest.mark.parametrize("name", EXTRAPOLATE)
def test_a_season_without_trend_is_repeated(name: str) -> None:
    steps = torch.arange(LENGTH + HORIZON).float()
    values = torch.sin(2 * math.pi * steps / SEASON)[None, :, None].repeat(1, 1, 2)
    ahead = STATISTICAL[name](**SIZES)(values[:, :LENGTH])
    assert ahead.shape == (1, HORIZON, 2)
    assert torch.allclose(ahead, values[:, LENGTH:], atol=2e-3)


def test_smoothing_continues_trend_and_season() -> None:
    values = growing(torch.arange(LENGTH + HORIZON).float())
    ahead = SmoothingForecaster(**SIZES)(values[:, :LENGTH])
    assert torch.allclose(ahead, values[:, LENGTH:], rtol=0.01)
    assert torch.allclose(ahead[..., 1], 10 * ahead[..., 0], rtol=1e-3)  # units do not matter


def test_logarithms_continue_a_growing_season() -> None:
    steps = torch.arange(LENGTH + HORIZON).float()
    raw = torch.exp(0.02 * steps + 0.3 * torch.sin(2 * math.pi * steps / SEASON))
    mean, spread = raw[:LENGTH].mean(), raw[:LENGTH].std()
    scaled = ((raw - mean) / spread)[None, :, None]
    network = SmoothingForecaster(**{**SIZES, "channels": 1}, log=True)
    lowest, highest = raw[:LENGTH].min() / spread, raw[:LENGTH].max() / spread
    network.use_logarithms(Logarithms((mean / spread)[None], lowest[None], highest[None]))
    assert torch.allclose(network(scaled[:, :LENGTH]), scaled[:, LENGTH:], atol=0.02)


@pytest.mark.parametrize(("beta", "phi"), [(0.0, 0.0), (0.2, 1.0), (0.6, 0.9)])
def test_smoothing_equals_that_of_statsmodels(beta: float, phi: float) -> None:
    holtwinters = pytest.importorskip("statsmodels.tsa.holtwinters")
    alpha, gamma = 0.35, 0.3

    class Alone(SmoothingForecaster):
        def grid(self) -> torch.Tensor:
            return torch.tensor([[alpha, beta, phi, gamma, float(phi > 0)]]).T

    random = np.random.default_rng(0)
    values = growing(torch.arange(LENGTH).float())[0, :, 0].numpy() + random.normal(size=LENGTH)
    last, spread = values[-1], values.std()
    window = (values - last) / spread
    fitted = (line_and_season(LENGTH, SEASON).double() @ torch.from_numpy(window)).numpy()
    slope, phases = fitted[0], fitted[1:]
    profile = phases - phases.mean()
    level = phases.mean() - slope if phi else (window[:SEASON] - profile).mean()
    model = holtwinters.ExponentialSmoothing(
        window,
        trend="add" if phi else None,
        damped_trend=0 < phi < 1,
        seasonal="add",
        seasonal_periods=SEASON,
        initialization_method="known",
        initial_level=level,
        initial_trend=slope if phi else None,
        initial_seasonal=profile,
    )
    options = {"smoothing_level": alpha, "smoothing_seasonal": gamma * (1 - alpha)}
    if phi:
        options["smoothing_trend"] = beta
    if 0 < phi < 1:
        options["damping_trend"] = phi
    theirs = model.fit(optimized=False, **options).forecast(HORIZON) * spread + last
    x = torch.from_numpy(values).float()[None, :, None].repeat(1, 1, 2)
    ours = Alone(**SIZES)(x)[0, :, 0].numpy()
    # The phase of the last row returns at step 12, where statsmodels leaves out its last update.
    assert ours[: SEASON - 1] == pytest.approx(theirs[: SEASON - 1], rel=2e-4)


def test_constant_windows_stay_constant() -> None:
    for network in STATISTICAL.values():
        ahead = network(**SIZES)(torch.full((3, LENGTH, 2), 7.0))
        assert torch.allclose(ahead, torch.full_like(ahead, 7.0), atol=1e-4)


def test_a_mean_gives_each_network_the_rows_that_it_was_built_for() -> None:
    short = SeasonalNaive(input_len=4, horizon=2, channels=1)
    long = SeasonalNaive(input_len=8, horizon=2, channels=1, season=3)
    x = torch.arange(8.0)[None, :, None]
    mean = MeanForecaster([short, long], [0.75, 0.25], input_len=8)
    expected = 0.75 * 7 + 0.25 * torch.tensor([5.0, 6.0])
    assert torch.allclose(mean(x)[0, :, 0], expected)


def test_a_lower_limit_holds_only_outside_of_training() -> None:
    network = LowerLimit(SeasonalNaive(input_len=4, horizon=2, channels=2), [0.0, None])
    x = torch.full((1, 4, 2), -1.0)
    assert network.eval()(x)[0, 0].tolist() == [0.0, -1.0]
    assert network.train()(x)[0, 0].tolist() == [-1.0, -1.0]
