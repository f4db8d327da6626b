"""Huber's loss against other ways of computing it."""

from __future__ import annotations

import pytest
import torch

from sacm_lab.rivals.huber import huber, residual_scale
from tests.strategies.cases import Net, batches, step

RESIDUALS = torch.linspace(-8, 8, 161, dtype=torch.float64)


def test_huber_is_torchs() -> None:
    expected = torch.nn.functional.huber_loss(
        RESIDUALS, torch.zeros_like(RESIDUALS), delta=1.345, reduction="none"
    )
    torch.testing.assert_close(huber(RESIDUALS, 1.345), expected)


def test_the_scale_is_the_deviation_of_normal_residuals_and_ignores_outliers() -> None:
    residual = torch.randn(20_001, generator=torch.Generator().manual_seed(0))
    assert float(residual_scale(2 * residual)) == pytest.approx(2, rel=0.02)
    residual[:1000] = 1e6
    assert float(residual_scale(residual)) == pytest.approx(1, rel=0.1)
    assert float(residual_scale(torch.zeros(5))) > 0


def test_it_replaces_the_loss_of_a_step() -> None:
    batch = batches(1)[0]
    own = step(Net().eval(), batch, "huber(limit=0.5,scale=fixed)")
    residual = own.answer() - batch.y
    torch.testing.assert_close(own.run.loss(own), huber(residual, 0.5).mean())
