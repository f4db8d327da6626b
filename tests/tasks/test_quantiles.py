"""Training for quantiles: they are those of the noise, none cross, and bounds come from them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from sacm.backbones.adapters import (
    QuantileAdapter,
    at_level,
    complete_levels,
    pinball,
    take_median,
)
from sacm.backbones.registry import build, names
from sacm.data import forecasting_data
from sacm.errors import ArgumentError
from sacm.inference import Predictor
from sacm.inference.forecast import evaluation_windows
from sacm.inference.intervals import measure_uncertainty
from sacm.metrics.probabilistic import pinball_loss
from sacm.tasks import get_task, make_settings
from sacm.training import Hardware, Run, train

LEVELS = (0.1, 0.5, 0.9)
TINY = {"task": "forecasting", "data": "noise", "backbone": "iTransformer", "size": "small"}


def exponential(rows: int = 8000) -> np.ndarray:
    """Skewed noise that nothing foretells: its quantiles are -log(1 - level)."""
    return np.random.default_rng(3).exponential(size=(rows, 1))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    settings = make_settings(
        **TINY,
        input_len=32,
        horizon=2,
        epochs=5,
        batch_size=64,
        learning_rate=0.003,
        strategy="raw",
        train_quantiles="0.9",
    )
    return train(
        settings,
        folder=tmp_path_factory.mktemp("runs"),
        data=forecasting_data(exponential(), name="noise"),
        hardware=Hardware(show_progress=False),
    )


def test_levels_are_completed():
    assert complete_levels([0.9, 0.75]) == (0.1, 0.25, 0.5, 0.75, 0.9)
    assert complete_levels([0.5]) == (0.25, 0.5, 0.75)
    with pytest.raises(ArgumentError, match="between 0 and 1"):
        complete_levels([1.0])


def test_the_loss_is_that_of_the_book():
    rng = np.random.default_rng(0)
    quantiles, target = rng.normal(size=(4, 3, 2, 3)), rng.normal(size=(4, 3, 2))
    expected = [pinball_loss(target, quantiles[..., i], q) for i, q in enumerate(LEVELS)]
    found = pinball(torch.from_numpy(quantiles), torch.from_numpy(target), LEVELS)
    np.testing.assert_allclose(found.numpy(), 2 * np.mean(expected, axis=0))


@pytest.mark.parametrize("backbone", names("forecasting"))
def test_quantiles_of_every_network_rise_around_its_own_forecast(backbone: str):
    torch.manual_seed(0)
    network = build(backbone, "forecasting", channels=3, size="small", input_len=24, horizon=6)
    adapted = QuantileAdapter(network, (0.05, 0.25)).eval()
    x = torch.randn(2, 24, 3)
    with torch.inference_mode():
        found = adapted(x)
        assert found.shape == (2, 6, 3, 5)
        assert bool((found.diff(dim=-1) > 0).all())
        torch.testing.assert_close(take_median(found), network.eval()(x))


def test_levels_in_between_are_interpolated():
    answer = torch.tensor([0.0, 1.0, 3.0]).expand(1, 1, 1, 3)
    assert float(at_level(answer, LEVELS, 0.7)) == pytest.approx(2.0)
    assert float(at_level(answer, LEVELS, 0.1)) == 0.0
    assert float(at_level(answer, LEVELS, 0.99)) == 3.0  # no further than what was learnt


def test_the_quantiles_learnt_are_those_of_the_noise(run: Run):
    assert run.settings.train_quantiles == LEVELS
    assert run.settings.select == "pinball"
    report = run.metrics["report"]["quantiles"]
    assert report["below"] == pytest.approx(LEVELS, abs=0.04)
    assert report["nominal"] == [0.8]
    assert report["coverage"] == pytest.approx([0.8], abs=0.05)
    # From the 10 % to the 90 % quantile of the law, in deviations of it, which are 1.
    assert report["width"] == pytest.approx([math.log(0.9 / 0.1)], rel=0.1)
    assert run.row["crps"] == report["crps"]
    predictor = Predictor.load(run)
    windows = np.random.default_rng(9).exponential(size=(200, 32, 1)).astype(np.float32)
    scaled = predictor.run_forecast(predictor.scale(windows))  # [B, H, C, Q]
    for place, level in enumerate(LEVELS):
        found = predictor.scaler.inverse(scaled[..., place]).mean()
        assert float(found) == pytest.approx(-math.log(1 - level), abs=0.15)


def test_bounds_come_from_learnt_quantiles(run: Run):
    predictor = Predictor.load(run)
    answer = predictor.tabulate(exponential(400), intervals=(0.8,), quantiles=(0.5,))
    frame = answer.frame
    assert "learnt quantiles, made conformal" in answer.notes[-1]
    name = next(c.removesuffix("_lower_80") for c in frame.columns if c.endswith("_lower_80"))
    low, middle, high = (frame[f"{name}_{end}"].mean() for end in ("lower_80", "q50", "upper_80"))
    assert high - middle > 1.5 * (middle - low)  # as skewed as the noise
    data = forecasting_data(exponential(), name="noise")
    found = measure_uncertainty(predictor, evaluation_windows(predictor, data), (0.8,))
    assert found["intervals"][0]["fixed"]["coverage"] == pytest.approx(0.8, abs=0.06)


def test_what_does_not_go_together_is_refused(tmp_path: Path):
    data = forecasting_data(exponential(300), name="noise")
    task = get_task("forecasting")
    with pytest.raises(ArgumentError, match="name quantiles by train_quantiles"):
        task.resolve(make_settings(**TINY, select="pinball"), data)
    with pytest.raises(ArgumentError, match="no use for it"):
        make_settings(task="anomaly", data="x", train_quantiles=(0.1,))


@pytest.mark.lab  # huber is one of its rivals
def test_a_strategy_with_a_loss_of_its_own_takes_no_quantiles():
    with pytest.raises(ArgumentError, match="has a loss of its own"):
        make_settings(**TINY, strategy="huber", train_quantiles=(0.1,))
