"""The trend filter against linear programming, and the windows that RobustTSF leaves out."""

from __future__ import annotations

import numpy as np
import torch
from scipy import optimize, sparse

from sacm.data import forecasting_data
from sacm.strategies import parse
from sacm_lab.rivals.robust_tsf import filter_trend
from tests.strategies.cases import Batch, Net, context


def objective(trend: np.ndarray, values: np.ndarray) -> float:
    return float(np.abs(trend - values).sum() + 0.3 * np.abs(np.diff(trend, 2)).sum())


def best_by_programming(values: np.ndarray) -> np.ndarray:
    """Minimise u + 0.3 v with u >= |s - z| and v >= |D s| by linear programming."""
    n = len(values)
    second = sparse.diags([1.0, -2.0, 1.0], [0, 1, 2], shape=(n - 2, n))
    one, bends = sparse.eye(n), sparse.eye(n - 2)
    rows = [
        [one, -one, None],
        [-one, -one, None],
        [second, None, -bends],
        [-second, None, -bends],
    ]
    bounds = np.concatenate([values, -values, np.zeros(2 * (n - 2))])
    cost = np.concatenate([np.zeros(n), np.ones(n), np.full(n - 2, 0.3)])
    found = optimize.linprog(cost, A_ub=sparse.bmat(rows), b_ub=bounds, bounds=(None, None))
    return np.asarray(found.x[:n])


def test_the_trend_is_as_good_as_that_of_linear_programming() -> None:
    rng = np.random.default_rng(0)
    values = np.sin(np.arange(200) / 12) + 0.1 * rng.standard_normal(200)
    values[rng.random(200) < 0.1] += 2
    best = objective(best_by_programming(values), values)
    assert best <= objective(filter_trend(values), values) * (1 + 1e-9) <= best * 1.001 + 1e-9


def test_windows_that_end_on_an_outlier_do_not_count() -> None:
    rng = np.random.default_rng(1)
    values = np.stack([np.sin(np.arange(400) / 20), np.cos(np.arange(400) / 30)], axis=1)
    values += 0.02 * rng.standard_normal(values.shape)
    values[100, 0] += 3
    prepared = parse("robust_tsf").prepare(forecasting_data(values), window=16)
    np.testing.assert_array_equal(prepared.data.values, values.astype(np.float32))
    assert "off the trend" in prepared.notes[0]
    run = prepared.strategy.begin(Net(), context())
    positions = torch.tensor([84, 85, 86])  # the last inputs are rows 99, 100 and 101
    batch = Batch(torch.zeros(3, 16, 2), torch.zeros(3, 10, 2), positions)
    kept = run.weights(batch, batch.y)
    assert kept is not None
    assert kept.shape == (3, 10, 2)
    assert kept[:, 0].tolist() == [[True, True], [False, True], [True, True]]
