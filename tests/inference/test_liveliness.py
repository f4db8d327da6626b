"""Intervals are wider after windows that move further, and cover as before."""

from __future__ import annotations

import numpy as np
import torch

from sacm.inference.calibration import from_residuals
from sacm.inference.liveliness import usual_moves, width_factors, window_moves


def test_moves_are_changes_over_the_horizon() -> None:
    x = torch.arange(12.0).reshape(1, 12, 1) * torch.tensor([1.0, 0.0])  # a ramp and a rest
    np.testing.assert_allclose(window_moves(x, 4), [[4.0, 0.0]])
    np.testing.assert_allclose(window_moves(x, 100), [[6.0, 0.0]])  # half of the window at most
    assert window_moves(torch.zeros(2, 1, 3), 5).shape == (2, 3)


def test_repaired_values_do_not_count() -> None:
    x = torch.arange(12.0).reshape(1, 12, 1).clone()
    x[0, 5] = 1e6
    repairs = torch.zeros_like(x)
    repairs[0, 5] = 1
    np.testing.assert_allclose(window_moves(x, 4, repairs), [[4.0]])
    assert np.isnan(window_moves(x, 4, torch.ones_like(x))).all()


def test_factors_are_one_where_nothing_is_known_and_bounded_elsewhere() -> None:
    usual = usual_moves(np.array([[1.0, 0.0, np.nan], [3.0, 0.0, np.nan]]))
    np.testing.assert_array_equal(usual, [2.0, 0.0, 0.0])
    factors = width_factors(np.array([[2.0, 5.0, 1.0], [1e9, 0.0, 1.0], [0.0, 1.0, np.nan]]), usual)
    np.testing.assert_allclose(factors, [[1, 1, 1], [4, 1, 1], [0.25, 1, 1]])


def test_calm_and_lively_windows_are_each_covered() -> None:
    random = np.random.default_rng(0)
    moves = np.where(np.arange(4000) % 2, 2.0, 0.5)[:, None]
    noise = random.normal(size=(4000, 3, 1)) * moves[:, None]
    plain = from_residuals(noise[:2000], None, source="noise")
    local = from_residuals(noise[:2000], None, source="noise", moves=moves[:2000])

    def covered(calibration: object, lively: float) -> float:
        own = moves[2000:, 0] == lively
        bounds = (local if calibration is local else plain).offsets(
            [0.1, 0.9], None, moves[2000:][own]
        )
        return float(((noise[2000:][own] >= bounds[0]) & (noise[2000:][own] <= bounds[1])).mean())

    assert covered(plain, 0.5) > 0.95  # too wide
    assert covered(plain, 2.0) < 0.7  # too narrow
    assert abs(covered(local, 0.5) - 0.8) < 0.06
    assert abs(covered(local, 2.0) - 0.8) < 0.06
