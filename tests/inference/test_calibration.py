"""Conformal calibration and intervals that adapt."""

from __future__ import annotations

import numpy as np
import pytest

from sacm.errors import ArgumentError
from sacm.inference.adaptive import AdaptiveIntervals
from sacm.inference.calibration import from_residuals, learn_widening
from sacm.inference.uncertainty import follow


def normal(count: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    return scale * np.random.default_rng(seed).normal(size=(count, 3, 2))


def test_quantiles_are_the_ranks_that_conformal_prediction_asks_for() -> None:
    residuals = np.random.default_rng(0).permutation(np.arange(1.0, 20))[:, None, None]
    found = from_residuals(residuals, None, source="numbers").offsets([0.1, 0.5, 0.9])
    assert found[:, 0, 0, 0].tolist() == [2.0, 10.0, 18.0]


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.95])
def test_new_residuals_of_the_same_kind_are_covered_as_promised(coverage: float) -> None:
    calibration = from_residuals(normal(9999), None, source="noise")
    low, high = calibration.offsets([(1 - coverage) / 2, (1 + coverage) / 2])
    fresh = normal(4000, seed=1)
    inside = ((fresh >= low) & (fresh <= high)).mean(axis=0)  # [H, C]
    assert np.abs(inside - coverage).max() < 0.035


def test_too_few_windows_for_a_level_are_refused() -> None:
    calibration = from_residuals(normal(30), None, source="noise")
    with pytest.raises(ArgumentError, match="needs 39 calibration windows but there are 30"):
        calibration.offsets([0.975])
    with pytest.raises(ArgumentError, match="between 0 and 1"):
        calibration.offsets([1.2])


def test_unobserved_targets_do_not_count() -> None:
    residuals = normal(200)
    residuals[:100, 0, 0] = np.nan
    calibration = from_residuals(residuals, None, source="noise")
    assert calibration.counts.tolist() == [[100, 200], [200, 200], [200, 200]]
    own = np.sort(residuals[100:, 0, 0])
    assert calibration.offsets([0.9])[0, 0, 0, 0] == own[int(np.ceil(101 * 0.9)) - 1]


def test_intervals_are_wider_where_much_was_repaired() -> None:
    shares = np.where(np.arange(400) % 4 == 0, 0.5, 0.0)
    residuals = normal(400) * (1 + 2 * shares[:, None, None])
    assert learn_widening(residuals, shares) == pytest.approx(2, abs=0.35)
    calibration = from_residuals(residuals, shares, source="noise")
    none, half = calibration.offsets([0.9], np.array([0.0, 0.5]))[0]
    assert (half > 1.7 * none).all()
    # Without experience of repairs there is a fixed rule, and no repair no widening.
    assert from_residuals(normal(99), np.zeros(99), source="noise").widening == 1


def test_adaptive_intervals_keep_their_promise_through_a_shift_where_fixed_ones_break_it() -> None:
    calibration = from_residuals(normal(300), None, source="noise")
    wild = np.concatenate([normal(300, seed=1), normal(1200, seed=2, scale=3.0)])
    lower, upper = follow(calibration, wild, np.arange(1500), 0.9)
    inside = (wild >= lower) & (wild <= upper)
    assert inside[500:].mean() == pytest.approx(0.9, abs=0.03)
    low, high = calibration.offsets([0.05, 0.95])
    assert ((wild >= low) & (wild <= high))[500:].mean() < 0.6


def test_rows_and_residuals_teach_the_same() -> None:
    calibration = from_residuals(normal(50), None, source="noise")
    by_rows = AdaptiveIntervals(calibration, coverage=0.8, rate=0.2)
    by_residuals = AdaptiveIntervals(calibration, coverage=0.8, rate=0.2)
    generator = np.random.default_rng(3)
    forecasts: list[np.ndarray] = []
    for _ in range(30):
        forecasts.append(generator.normal(size=(3, 2)))
        bounds = by_rows.issue(forecasts[-1])
        offsets = by_residuals.issue(np.zeros((3, 2)))
        np.testing.assert_allclose(bounds.lower - forecasts[-1], offsets.lower, atol=1e-12)
        row = 4 * generator.normal(size=2)
        waiting = forecasts[-3:]
        steps = range(len(waiting) - 1, -1, -1)
        by_rows.observe(row)
        by_residuals.learn(
            np.stack([row - own[step] for own, step in zip(waiting, steps, strict=True)])
        )


def test_a_row_that_nobody_saw_teaches_nothing() -> None:
    calibration = from_residuals(normal(50), None, source="noise")
    intervals = AdaptiveIntervals(calibration, coverage=0.8)
    first = intervals.issue(np.zeros((3, 2)))
    for _ in range(40):
        intervals.observe(np.full(2, np.nan))
    np.testing.assert_array_equal(intervals.issue(np.zeros((3, 2))).upper, first.upper)
    with pytest.raises(ArgumentError, match="10 calibration windows"):
        AdaptiveIntervals(from_residuals(normal(5), None, source="noise"))
