"""Weights by the density of local discrepancies."""

from __future__ import annotations

import numpy as np
import torch
from scipy import stats

from sacm.data import forecasting_data
from sacm.strategies import TrainingContext, parse
from sacm_lab.rivals.reld import Density, local_discrepancy
from tests.strategies.cases import Batch, Net


def test_the_local_discrepancy_is_welchs_t() -> None:
    values = np.random.default_rng(0).standard_normal((40, 2))
    found = local_discrepancy(values, 5)
    for row in (5, 17, 35):
        expected = stats.ttest_ind(values[row : row + 5], values[row - 5 : row], equal_var=False)
        np.testing.assert_allclose(found[row], np.abs(expected.statistic))
    assert (found[:5] == 0).all()
    assert (found[36:] == 0).all()


def test_the_density_follows_how_common_values_are() -> None:
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(5000, 1, generator=generator).abs()
    density = Density(values, smoothing=2.0)
    places = torch.tensor([[0.1], [1.0], [2.0]])
    expected = torch.exp(-0.5 * places.square())  # the half-normal density, its peak 1
    torch.testing.assert_close(density(places), expected, rtol=0.15, atol=0.05)


def test_a_span_with_a_jump_counts_less() -> None:
    rng = np.random.default_rng(2)
    values = 0.3 * rng.standard_normal((600, 2))
    values[300:] += 10
    fitted = parse("reld").prepare(forecasting_data(values), window=16).strategy
    positions = torch.arange(0, 390)
    everything = Batch(torch.zeros(390, 16, 2), torch.zeros(390, 10, 2), positions)
    context = TrainingContext("forecasting", 2, 600, train=[everything], val=[everything], seed=0)
    run = fitted.begin(Net(), context)
    kept = run.weights(everything, everything.y)
    assert kept is not None
    jump = kept[280, 0].mean()  # targets are rows 296 to 305
    assert jump < 0.3 * kept[:250].mean()
