"""Repairs change nothing healthy, look ahead only when they may, and know how sure they are."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sacm.errors import ArgumentError
from sacm.quality.kinds import CLIPPED, MISSING
from sacm.quality.series import SeriesRepairer
from tests.quality.series.faulty import healthy

_CACHE: list[SeriesRepairer] = []


def _fitted() -> SeriesRepairer:
    if not _CACHE:
        values = healthy()
        _CACHE.append(SeriesRepairer().fit(values, np.zeros(values.shape, np.uint8)))
    return _CACHE[0]


def _with_gaps(values: np.ndarray, seed: int, share: float = 0.1) -> np.ndarray:
    """Flags with gaps of many lengths."""
    generator = np.random.default_rng(seed)
    flags = np.zeros(values.shape, np.uint8)
    while np.mean(flags > 0) < share:
        length = int(generator.choice([1, 3, 10, 40]))
        first, channel = generator.integers(len(values)), generator.integers(values.shape[1])
        flags[first : first + length, channel] = MISSING
    return flags


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 1000), causal=st.booleans())
def test_healthy_values_are_bit_identical_and_nothing_is_left_empty(
    seed: int, causal: bool
) -> None:
    values = healthy(700, seed)
    flags = _with_gaps(values, seed)
    values[flags > 0] = np.nan
    repair = _fitted().repair(values, flags, causal=causal)
    np.testing.assert_array_equal(repair.values[flags == 0], values[flags == 0])
    assert np.isfinite(repair.values).all()
    assert np.all(repair.uncertainty[flags == 0] == 0)
    assert np.all(repair.uncertainty[flags > 0] > 0)


@settings(max_examples=10, deadline=None)
@given(cut=st.integers(1, 599), seed=st.integers(0, 1000))
def test_causal_repairs_do_not_depend_on_later_rows(cut: int, seed: int) -> None:
    values = healthy(600, seed)
    flags = _with_gaps(values, seed)
    whole = _fitted().repair(values, flags, start=5, causal=True)
    changed, marks = values.copy(), flags.copy()
    changed[cut:] += 100
    marks[cut:] = _with_gaps(values, seed + 1)[cut:]
    part = _fitted().repair(changed, marks, start=5, causal=True)
    np.testing.assert_allclose(part.values[:cut], whole.values[:cut], rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(part.uncertainty[:cut], whole.uncertainty[:cut])


def test_pieces_are_repaired_as_if_alone() -> None:
    first, second = healthy(300, 1), healthy(400, 2) + 50
    values = np.concatenate([first, second])
    flags = _with_gaps(values, 3)
    flags[295:305] = MISSING
    together = _fitted().repair(values, flags, [range(300), range(300, 700)])
    alone = [_fitted().repair(first, flags[:300]), _fitted().repair(second, flags[300:])]
    np.testing.assert_array_equal(together.values, np.concatenate([one.values for one in alone]))


@pytest.mark.parametrize(("length", "factor"), [(1, 1.05), (6, 0.5), (24, 0.3)])
def test_a_season_is_repaired_far_better_than_by_a_line(length: int, factor: float) -> None:
    values = healthy(2400, 9)
    flags = np.zeros(values.shape, np.uint8)
    for first in range(50, 2300, 97):
        flags[first : first + length, 0] = MISSING
    repaired = SeriesRepairer().fit(values, flags).repair(values, flags).values
    rows = np.flatnonzero(flags[:, 0])
    known = np.flatnonzero(flags[:, 0] == 0)
    line = np.interp(rows, known, values[known, 0])
    error = np.abs(repaired[rows, 0] - values[rows, 0]).mean()
    assert error < factor * np.abs(line - values[rows, 0]).mean()


def test_uncertainty_grows_with_the_gap_and_tells_the_error() -> None:
    values = healthy(2400, 4)
    flags = np.zeros(values.shape, np.uint8)
    for first in range(100, 2200, 150):
        flags[first, 2] = MISSING
        flags[first + 30 : first + 36, 2] = MISSING
        flags[first + 60 : first + 108, 2] = MISSING
    repair = SeriesRepairer().fit(values, flags).repair(values, flags)
    sizes = [repair.uncertainty[row, 2] for row in (100, 130, 160)]
    assert sizes[0] <= sizes[1] <= sizes[2]
    rows = flags[:, 2] > 0
    errors = np.abs(repair.values - values)[rows, 2]
    assert 0.5 < errors.mean() * 1.25 / repair.uncertainty[rows, 2].mean() < 2


def test_causal_uncertainty_grows_inside_a_gap() -> None:
    values = np.random.default_rng(0).standard_normal((3000, 1)).cumsum(axis=0)
    flags = np.zeros(values.shape, np.uint8)
    repairer = SeriesRepairer().fit(values, flags)
    flags[1000:1100] = MISSING
    unsure = repairer.repair(values, flags, causal=True).uncertainty[1000:1100, 0]
    assert np.all(np.diff(unsure) >= 0)
    assert unsure[-1] > 3 * unsure[0]


def test_the_stored_repairer_gives_the_same_values() -> None:
    values = healthy(800, 6)
    flags = _with_gaps(values, 6)
    again = SeriesRepairer.from_dict(json.loads(json.dumps(_fitted().to_dict(), allow_nan=False)))
    for causal in (False, True):
        one, other = (each.repair(values, flags, causal=causal) for each in (_fitted(), again))
        np.testing.assert_array_equal(one.values, other.values)
        np.testing.assert_array_equal(one.uncertainty, other.uncertainty)


def test_clipped_values_are_repaired_to_the_limit_or_beyond() -> None:
    values = healthy(1000, 8)
    limit = np.quantile(values[:, 0], 0.9)
    flags = np.where(values >= limit, CLIPPED, 0).astype(np.uint8)
    flags[:, 1:] = 0
    clipped = values.copy()
    clipped[:, 0] = np.minimum(values[:, 0], limit)
    repaired = _fitted().repair(clipped, flags).values
    assert np.all(repaired[flags > 0] >= limit)
    assert repaired[:, 0].max() > limit + 0.1


def test_a_channel_without_any_value_is_filled_with_zeros_and_not_trusted() -> None:
    values = healthy(400)
    values[:, 1] = np.nan
    flags = np.where(np.isnan(values), MISSING, 0).astype(np.uint8)
    repair = SeriesRepairer().fit(values, flags).repair(values, flags)
    assert np.all(repair.values[:, 1] == 0)
    assert np.all(np.isinf(repair.uncertainty[:, 1]))


def test_a_gap_without_any_known_value_falls_back_to_what_was_learnt() -> None:
    values = np.full((30, 3), np.nan)
    flags = np.full((30, 3), MISSING, np.uint8)
    for causal in (False, True):
        repaired = _fitted().repair(values, flags, start=1000, causal=causal).values
        usual = healthy()
        assert np.all(np.abs(repaired - np.median(usual, axis=0)) < 4 * usual.std(axis=0))


@pytest.mark.parametrize("rows", [1, 2, 5, 30])
def test_short_series_can_be_fitted_and_repaired(rows: int) -> None:
    values = healthy(rows)
    flags = np.zeros(values.shape, np.uint8)
    flags[-1, 0] = MISSING
    repair = SeriesRepairer().fit(values, flags).repair(values, flags)
    assert np.isfinite(repair.values).all()


def test_wrong_arguments_are_refused_in_a_sentence() -> None:
    values = healthy(100)
    flags = np.zeros(values.shape, np.uint8)
    with pytest.raises(ArgumentError, match="not fitted"):
        SeriesRepairer().repair(values, flags)
    with pytest.raises(ArgumentError, match="same"):
        _fitted().repair(values, flags[:50])
    with pytest.raises(ArgumentError, match="2 channels"):
        _fitted().repair(values[:, :2], flags[:, :2])
