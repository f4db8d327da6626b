"""Short stretches that leap away and back."""

from __future__ import annotations

import numpy as np
import pytest

import sacm
from sacm.quality.series.excursions import find_excursions


def make_waves(rows: int = 1500, seed: int = 0) -> np.ndarray:
    time = np.arange(rows)
    noise = np.random.default_rng(seed).normal(0, 0.5, rows)
    return 5 * np.cos(2 * np.pi * time / 24) + noise


@pytest.mark.parametrize("length", [2, 3, 4, 5, 6])
def test_a_short_leap_away_and_back_is_found(length: int) -> None:
    values = make_waves()
    values[700 : 700 + length] += 40
    quality = sacm.inspect(values)
    assert (quality.flags[700 : 700 + length] > 0).all()
    assert (quality.flags > 0).sum() <= length + 4


def test_a_step_that_stays_is_none() -> None:
    plain = np.random.default_rng(0).normal(0, 0.1, 500)
    plain[300:] += 10
    limit = np.full(500, 1.0)
    assert not find_excursions(plain, np.ones(500, bool), limit).any()


def test_what_happens_often_is_natural() -> None:
    plain = np.random.default_rng(0).normal(0, 0.1, 1000)
    for first in range(20, 980, 40):
        plain[first : first + 4] += 10
    limit = np.full(1000, 1.0)
    assert not find_excursions(plain, np.ones(1000, bool), limit).any()
