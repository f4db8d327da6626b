"""Wild values on many single steps: found where they are, and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest

from sacm.quality.kinds import SPIKE
from sacm.quality.series.detector import SeriesDetector
from sacm.quality.series.scatter import find_scattered, fit_scatter, step_residual

ROWS = 3000


def walk(seed: int = 0) -> np.ndarray:
    """A day's wave on a random walk [T]."""
    random = np.random.default_rng(seed)
    wave = 3 * np.sin(2 * np.pi * np.arange(ROWS) / 48)
    return wave + np.cumsum(random.normal(0, 0.1, ROWS)) + random.normal(0, 0.05, ROWS)


def scattered(values: np.ndarray, share: float, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Values with wild noise on single steps, and where."""
    random = np.random.default_rng(seed)
    wild = random.random(len(values)) < share
    noise = random.normal(0, 2 * values.std(), len(values))
    return np.where(wild, values + noise, values), wild


def test_residuals_are_those_of_a_plain_loop() -> None:
    random = np.random.default_rng(3)
    values, kept = random.normal(size=60), random.random(60) < 0.7
    found = step_residual(values, kept)
    for row in range(3, 57):
        before = [r for r in range(row) if kept[r]][-2:]
        after = [r for r in range(row + 1, 60) if kept[r]][:2]
        if len(before) < 2 or len(after) < 2:
            continue
        line = np.interp(row, [before[1], after[0]], values[[before[1], after[0]]])
        guesses = (np.median(values[[*before, *after]]), line)
        assert abs(found[row]) == pytest.approx(min(abs(values[row] - g) for g in guesses))


@pytest.mark.parametrize("share", [0.2, 0.3])
def test_wild_single_steps_are_found(share: float) -> None:
    values, wild = scattered(walk(), share)
    model = fit_scatter([values], [np.ones(ROWS, bool)])
    assert model is not None
    assert model.share == pytest.approx(share, rel=0.3)
    found = find_scattered(values, np.ones(ROWS, bool), model)
    large = wild & (np.abs(values - walk()) > walk().std())
    assert found[large].mean() > 0.95
    assert wild[found].mean() > 0.9


def test_few_wild_steps_are_left_to_the_test_for_spikes() -> None:
    values, _ = scattered(walk(), 0.08)
    assert fit_scatter([values], [np.ones(ROWS, bool)]) is None


def _clustered(random: np.random.Generator) -> np.ndarray:
    busy = np.repeat(random.random(ROWS // 50) < 0.3, 50)
    return walk() + np.where(busy, random.normal(0, 6, ROWS), 0.0)


def _one_sided(random: np.random.Generator) -> np.ndarray:
    return walk() + np.where(random.random(ROWS) < 0.2, random.exponential(8, ROWS), 0.0)


def _long_tails(random: np.random.Generator) -> np.ndarray:
    return random.standard_t(2, ROWS)


def _steps(random: np.random.Generator) -> np.ndarray:
    return np.where(random.random(ROWS) < 0.3, random.normal(0, 5, ROWS).round(), 0.0)


@pytest.mark.parametrize("natural", [lambda _: walk(), _clustered, _one_sided, _long_tails, _steps])
@pytest.mark.parametrize("seed", range(3))
def test_lively_channels_are_left_alone(
    natural: Callable[[np.random.Generator], np.ndarray], seed: int
) -> None:
    values = natural(np.random.default_rng(seed))
    assert fit_scatter([values], [np.ones(ROWS, bool)]) is None


def test_rows_without_wild_values_are_left_alone() -> None:
    model = fit_scatter([scattered(walk(), 0.3)[0]], [np.ones(ROWS, bool)])
    assert model is not None
    assert not find_scattered(walk(), np.ones(ROWS, bool), model).any()


def test_missing_values_are_no_wild_ones() -> None:
    values, wild = scattered(walk(), 0.3)
    good = np.random.default_rng(5).random(ROWS) < 0.8
    values = np.where(good, values, np.nan)
    model = fit_scatter([values], [good])
    assert model is not None
    found = find_scattered(values, good, model)
    assert not found[~good].any()
    assert wild[found].mean() > 0.85


def test_a_detector_flags_them_in_related_channels_and_survives_json() -> None:
    both = np.stack([walk(), walk() + walk(7)], 1)
    broken = [scattered(both[:, channel], 0.3, seed=channel) for channel in range(2)]
    values, wild = (np.stack(parts, 1) for parts in zip(*broken, strict=True))
    detector = SeriesDetector().fit(values)
    flags = detector.detect(values)
    large = wild & (np.abs(values - both) > both.std(0))
    assert (flags[large] == SPIKE).mean() > 0.9
    again = SeriesDetector.from_dict(json.loads(json.dumps(detector.to_dict())))
    np.testing.assert_array_equal(again.detect(values), flags)
    # No wild value is known before the rows after it are.
    np.testing.assert_array_equal(
        detector.detect(values, causal=True)[:500], detector.detect(values[:500], causal=True)
    )
