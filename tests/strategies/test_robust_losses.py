"""Huber's and Tukey's losses against other ways of computing them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import integrate, optimize

from sacm.errors import ArgumentError
from sacm.strategies import parse
from sacm.strategies.robust_losses import huber, residual_scale, tukey

from .cases import Net, batches, context

RESIDUALS = torch.linspace(-8, 8, 161, dtype=torch.float64)


def test_huber_is_torchs() -> None:
    expected = torch.nn.functional.huber_loss(
        RESIDUALS, torch.zeros_like(RESIDUALS), delta=1.345, reduction="none"
    )
    torch.testing.assert_close(huber(RESIDUALS, 1.345), expected)


def test_tukey_is_the_integral_of_its_influence() -> None:
    def influence(r: float) -> float:
        return r * (1 - (r / 4.685) ** 2) ** 2 if abs(r) < 4.685 else 0.0

    for r in (0.1, 1.0, 3.0, 4.6, 6.0):
        expected = integrate.quad(influence, 0, min(r, 4.685))[0]
        assert float(tukey(torch.tensor(r, dtype=torch.float64), 4.685)) == pytest.approx(expected)


def test_the_scale_is_the_deviation_of_normal_residuals_and_ignores_outliers() -> None:
    residual = torch.randn(20_001, generator=torch.Generator().manual_seed(0))
    assert float(residual_scale(2 * residual)) == pytest.approx(2, rel=0.02)
    residual[:1000] = 1e6
    assert float(residual_scale(residual)) == pytest.approx(1, rel=0.1)
    assert float(residual_scale(torch.zeros(5))) > 0


@pytest.mark.parametrize(("name", "limit"), [("huber", 1.345), ("tukey", 4.685)])
def test_location_is_found_among_outliers(name: str, limit: float) -> None:
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(3, 1, 90), np.full(10, 50.0)])
    run = parse(name).begin(Net(), context())
    target = torch.from_numpy(values)

    def total(place: float) -> float:
        losses = run.losses(torch.full_like(target, place), target)
        assert losses is not None
        return float(losses.sum())

    best = optimize.minimize_scalar(total, bounds=(0, 10), method="bounded").x
    assert abs(best - 3) < 0.5 < abs(values.mean() - 3)


def test_a_fixed_scale_counts_in_deviations_of_the_training_rows() -> None:
    batch = batches(1)[0]
    run = parse("huber(limit=0.5,scale=fixed)").begin(Net(), context())
    found = run.losses(batch.y + 2, batch.y)
    torch.testing.assert_close(found, torch.full_like(batch.y, 0.5 * (2 - 0.25)))


@pytest.mark.parametrize("text", ["huber(limit=0)", "tukey(scale=guess)"])
def test_wrong_options_are_one_sentence(text: str) -> None:
    with pytest.raises(ArgumentError, match=text.partition("(")[0]):
        parse(text)


def test_two_losses_or_another_task_are_refused() -> None:
    with pytest.raises(ArgumentError, match="huber and tukey both replace the loss: use one"):
        parse("huber+tukey")
    with pytest.raises(ArgumentError, match="huber is for forecasting, not for anomaly"):
        parse("sacm+huber").check_task("anomaly")
