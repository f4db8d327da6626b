"""Drifts that end in a jump back."""

from __future__ import annotations

import numpy as np
import pytest

from sacm.quality.kinds import SHIFT
from sacm.quality.series import SeriesDetector


def make_waves(rows: int = 3000, seed: int = 0) -> np.ndarray:
    wave = np.sin(2 * np.pi * np.arange(rows) / 24)
    return wave + 0.15 * np.random.default_rng(seed).standard_normal(rows)


def find_flags(values: np.ndarray) -> np.ndarray:
    return SeriesDetector().fit(values[:, None]).detect(values[:, None])[:, 0]


@pytest.mark.parametrize("rows", [30, 60, 90])
@pytest.mark.parametrize("size", [-3.0, 3.0])
def test_a_drift_that_jumps_back_is_found(rows: int, size: float) -> None:
    values = make_waves()
    for first in (700, 1500, 2300):
        values[first : first + rows] += size * np.linspace(0, 1, rows)
    flags = find_flags(values)
    drifting = np.zeros(len(values), bool)
    for first in (700, 1500, 2300):
        drifting[first : first + rows] = True
        # Its last half is far away; where it began nobody can tell exactly.
        assert np.mean(flags[first + rows // 2 : first + rows] == SHIFT) > 0.9
    assert np.mean(flags[~drifting] > 0) < 0.02


def test_jumps_without_a_drift_before_them_are_none() -> None:
    values = make_waves()
    for first in (700, 1500, 2300):
        values[first:] += 3.0
    assert np.mean(find_flags(values) == SHIFT) < 0.005


def test_a_channel_that_fills_and_empties_is_natural() -> None:
    generator = np.random.default_rng(1)
    fills = [np.linspace(0, 3, length) for length in generator.integers(40, 90, 80)]
    values = np.concatenate(fills)[:3000] + 0.1 * generator.standard_normal(3000)
    assert np.mean(find_flags(values) > 0) < 0.01
