from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from sacm.errors import ArgumentError
from sacm.metrics.forecasting import crps, measure_intervals


def test_coverage_and_width_are_counts_and_means() -> None:
    truth = np.array([[[0.0], [5.0]], [[1.0], [np.nan]]])  # [N, H, C]
    lower, upper = np.full(truth.shape, -0.5), np.full(truth.shape, 2.0)
    found = measure_intervals(truth, lower, upper, 0.9)
    assert found["coverage"] == pytest.approx(2 / 3)
    assert found["width"] == 2.5
    with pytest.raises(ArgumentError, match="no target was observed"):
        measure_intervals(np.full((1, 1, 1), np.nan), lower[:1, :1], upper[:1, :1], 0.9)


def test_crps_of_a_normal_forecast_is_the_closed_formula() -> None:
    levels = (np.arange(1000) + 0.5) / 1000
    truth = np.array([0.7, -1.3])
    quantiles = np.repeat(norm.ppf(levels)[:, None], 2, axis=1)
    expected = truth * (2 * norm.cdf(truth) - 1) + 2 * norm.pdf(truth) - 1 / np.sqrt(np.pi)
    assert crps(truth, quantiles, levels) == pytest.approx(expected.mean(), rel=2e-3)
    assert crps(truth, np.zeros((1, 2)), [0.5]) == pytest.approx(np.abs(truth).mean())
