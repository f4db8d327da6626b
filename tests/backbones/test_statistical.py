"""Forecasts that need no gradient: what they say of series whose future is known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from sacm.backbones.adapters import LowerLimit
from sacm.backbones.statistical import (
    STATISTICAL,
    LinearForecaster,
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
    ahead = fitted(name, values[:, :LENGTH])(values[:, :LENGTH])
    assert ahead.shape == (1, HORIZON, 2)
    assert torch.allclose(ahead, values[:, LENGTH:], atol=5e-3)


def fitted(name: str, windows: torch.Tensor, zero: float = math.inf) -> Any:
    network = STATISTICAL[name](**{**SIZES, "channels": windows.shape[2]})
    network.zero = torch.full((windows.shape[2],), zero)
    if isinstance(network, SmoothingForecaster):
        network.fit(windows)
    return network


def test_smoothing_continues_trend_and_season() -> None:
    values = growing(torch.arange(LENGTH + HORIZON).float())
    ahead = fitted("exponential smoothing", values[:, :LENGTH])(values[:, :LENGTH])
    assert torch.allclose(ahead, values[:, LENGTH:], rtol=0.01)
    assert torch.allclose(ahead[..., 1], 10 * ahead[..., 0], rtol=1e-3)  # units do not matter


def test_a_season_that_grows_with_the_level_continues_if_zero_is_known() -> None:
    steps = torch.arange(LENGTH + HORIZON).float()
    raw = (10 + 0.4 * steps) * (1 + 0.3 * torch.sin(2 * math.pi * steps / SEASON))
    mean, spread = raw[:LENGTH].mean(), raw[:LENGTH].std()
    scaled = ((raw - mean) / spread)[None, :, None]
    window, truth = scaled[:, :LENGTH], scaled[:, LENGTH:]
    with_zero, without = (
        (fitted("exponential smoothing", window, zero)(window) - truth).abs().mean()
        for zero in (float(-mean / spread), math.inf)
    )
    assert with_zero < 0.02
    assert with_zero < 0.3 * without


@pytest.mark.parametrize("kind", ["add", "mul"])
@pytest.mark.parametrize(("beta", "phi"), [(0.0, 0.0), (0.2, 1.0), (0.6, 0.9)])
def test_smoothing_equals_that_of_statsmodels(beta: float, phi: float, kind: str) -> None:
    holtwinters = pytest.importorskip("statsmodels.tsa.holtwinters")
    alpha, gamma = 0.35, 0.3
    random = np.random.default_rng(0)
    values = growing(torch.arange(LENGTH).float())[0, :, 0].numpy() + random.normal(size=LENGTH)
    network = SmoothingForecaster(**{**SIZES, "channels": 1})
    network.zero = torch.zeros(1)
    form = [alpha, beta, phi, gamma, {"add": 1.0, "mul": 2.0}[kind]]
    network.forms = torch.tensor(form)[:, None, None]
    network.noise = torch.zeros(1, 4, 1, 1, 1)  # these constants and no others
    spread = values.std()
    first = torch.from_numpy(values / spread)
    slope, *phases = (line_and_season(LENGTH, SEASON).double() @ first).numpy()
    profile = np.array(phases) - np.mean(phases)
    if kind == "mul":
        profile = 1 + profile / float(first.mean())
    rows = first[:SEASON].numpy()
    level = (rows / profile if kind == "mul" else rows - profile).mean()
    model = holtwinters.ExponentialSmoothing(
        values / spread,
        trend="add" if phi else None,
        damped_trend=0 < phi < 1,
        seasonal=kind,
        seasonal_periods=SEASON,
        initialization_method="known",
        initial_level=np.mean(phases) - slope if phi else level,
        initial_trend=slope if phi else None,
        initial_seasonal=profile,
    )
    options = {"smoothing_level": alpha, "smoothing_seasonal": gamma * (1 - alpha)}
    if phi:
        options["smoothing_trend"] = beta
    if 0 < phi < 1:
        options["damping_trend"] = phi
    theirs = model.fit(optimized=False, **options).forecast(HORIZON) * spread
    ours = network(torch.from_numpy(values).float()[None, :, None])[0, :, 0].numpy()
    # The phase of the last row returns at step 12, where statsmodels leaves out its last update.
    assert ours[: SEASON - 1] == pytest.approx(theirs[: SEASON - 1], rel=2e-3)


def test_regression_finds_a_linear_rule_and_leaves_out_what_was_not_measured() -> None:
    steps = np.arange(400)
    series = np.sin(0.5 * steps) + 0.5 * np.sin(1.3 * steps)
    cuts = np.lib.stride_tricks.sliding_window_view(series, 12)[..., None]
    windows = torch.from_numpy(cuts.copy()).float()
    x, y = windows[:, :8], windows[:, 8:]
    network = LinearForecaster(input_len=8, horizon=4, channels=1)
    broken, counts = y.clone(), torch.ones_like(y)
    broken[::3], counts[::3] = 50.0, 0.0
    network.fit(x, broken, counts)
    assert (network(x) - y).abs().mean() < 0.1 * y.abs().mean()


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
