"""Healthy series of any kind keep their values: false flags stay rare."""

from __future__ import annotations

import numpy as np
import pytest

from sacm.quality.series import SeriesDetector
from tests.quality.series.families import FAMILIES

SEEDS = range(4)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_at_most_one_per_cent_of_a_healthy_family_is_flagged(family: str, causal: bool) -> None:
    shares = []
    for seed in SEEDS:
        values = FAMILIES[family](np.random.default_rng(seed), 2000)[:, None]
        flags = SeriesDetector().fit(values).detect(values, causal=causal)
        shares.append(np.mean(flags > 0))
    assert np.mean(shares) <= 0.01


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_a_healthy_family_stays_healthy_on_rows_after_the_fit(family: str) -> None:
    shares = []
    for seed in SEEDS:
        values = FAMILIES[family](np.random.default_rng(seed), 3000)[:, None]
        detector = SeriesDetector().fit(values[:2000])
        flags = detector.detect(values[2000:], start=2000, causal=True)
        shares.append(np.mean(flags > 0))
    # A wandering or growing series leaves the range of its past, so more is allowed here.
    assert np.mean(shares) <= 0.015


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_short_healthy_series_are_flagged_rarely(family: str) -> None:
    shares = []
    for seed in range(10):
        values = FAMILIES[family](np.random.default_rng(seed), 400)[:, None]
        shares.append(np.mean(SeriesDetector().fit(values).detect(values) > 0))
    assert np.mean(shares) <= 0.01
