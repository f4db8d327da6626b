"""Faults of series: how much they break, what they leave, and what they put in place."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sacm.errors import ArgumentError
from sacm_lab.robust.faults import FAULTS
from sacm_lab.robust.faults.fault import corrupt_series, series_kinds

SERIES_KINDS = series_kinds()
SERIES_FAULTS = SERIES_KINDS[1:]
MIXTURES = {name: FAULTS.get(name).parts for name in ("mix", "all")}

ROWS = 6000
SCALE = np.array([1.0, 50.0, 0.01])


def series() -> np.ndarray:
    t = np.arange(ROWS)[:, None]
    noise = np.random.default_rng(0).standard_normal((ROWS, 3))
    return (5 + np.sin(2 * np.pi * t / 24) + 0.1 * noise) * SCALE


def broken_runs(flags: np.ndarray) -> list[slice]:
    """Runs of broken steps in [T]."""
    edges = np.flatnonzero(np.diff(np.r_[0, flags.astype(int), 0]))
    return [slice(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True)]


@pytest.mark.parametrize("kind", [*SERIES_FAULTS, *MIXTURES])
def test_about_the_share_is_broken_and_the_rest_keeps_every_bit(kind: str) -> None:
    x = series()
    kept = x.copy()
    values, broken, kinds = corrupt_series(x, kind, 0.2, seed=1)
    assert np.array_equal(x, kept)
    assert np.array_equal(values[~broken], x[~broken])
    assert np.array_equal(broken, kinds > 0)
    if kind == "tsf_seq":  # stationary share of a chain that starts by 0.3 and goes on by 0.2
        assert broken.mean() == pytest.approx(0.3 / (0.3 + 0.8), abs=0.02)
    elif kind == "spike":  # no two in a row
        assert broken.mean() == pytest.approx(0.2 * 0.8, abs=0.01)
        assert not (broken[1:] & broken[:-1]).any()
    else:
        assert broken.mean(0) == pytest.approx([0.2] * 3, abs=0.04)
    wanted = {SERIES_KINDS.index(part) for part in MIXTURES.get(kind, (kind,))}
    assert set(np.unique(kinds)) - {0} == wanted


@pytest.mark.parametrize("kind", SERIES_FAULTS)
def test_the_seed_decides(kind: str) -> None:
    x = series()[:1500]
    once, again, other = (corrupt_series(x, kind, 0.1, seed=s) for s in (3, 3, 4))
    assert np.array_equal(once.values, again.values, equal_nan=True)
    assert not np.array_equal(once.corrupted, other.corrupted)


@pytest.mark.parametrize(("kind", "value"), [("missing", np.nan), ("code", -9999.0), ("zero", 0.0)])
def test_values_are_replaced_by_numbers_of_the_sensor(kind: str, value: float) -> None:
    values, broken, _ = corrupt_series(series(), kind, 0.1)
    assert np.array_equal(values[broken], np.full(broken.sum(), value), equal_nan=True)


def test_a_stuck_segment_holds_its_first_value() -> None:
    x = series()
    values, broken, _ = corrupt_series(x, "stuck", 0.1)
    for c in range(3):
        for run in broken_runs(broken[:, c]):
            assert 24 <= run.stop - run.start < 96
            assert values[run, c] == pytest.approx(np.full(run.stop - run.start, x[run.start, c]))


def test_a_shift_is_one_constant_of_two_to_four_deviations() -> None:
    x = series()
    values, broken, _ = corrupt_series(x, "shift", 0.1)
    difference = (values - x) / x.std(0)
    sizes = []
    for c in range(3):
        for run in broken_runs(broken[:, c]):
            assert np.ptp(difference[run, c]) < 1e-9
            sizes.append(difference[run.start, c])
    assert 2 <= np.abs(sizes).min() <= np.abs(sizes).max() <= 4
    assert min(sizes) < 0 < max(sizes)


@pytest.mark.parametrize(
    ("kind", "low", "high", "deviation"),
    [
        ("spike", 3, 8, None),
        ("range", 12, 40, None),
        ("points", 0, 20, 3.0),
        ("burst", 0, 20, 1.5),
        ("tsf_const", 0.5, 0.5, None),
        ("tsf_gaussian", 0, 20, 2.0),
    ],
)
def test_errors_have_their_size(
    kind: str, low: float, high: float, deviation: float | None
) -> None:
    x = series()
    values, broken, _ = corrupt_series(x, kind, 0.2)
    errors = ((values - x) / x.std(0))[broken]
    assert low - 1e-6 <= np.abs(errors).min() <= np.abs(errors).max() <= high + 1e-6
    if deviation is not None:
        assert errors.std() == pytest.approx(deviation, rel=0.05)


def test_missing_values_of_robust_tsf_are_the_mean() -> None:
    x = series()
    values, broken, _ = corrupt_series(x, "tsf_missing", 0.1)
    expected = np.broadcast_to(x.mean(0), x.shape)[broken]
    assert values[broken] == pytest.approx(expected)


def test_sequences_of_robust_tsf_go_on_by_the_ratio() -> None:
    x = series()
    values, broken, _ = corrupt_series(x, "tsf_seq", 0.3)
    before, now = broken[:-1], broken[1:]
    assert now[before].mean() == pytest.approx(0.3, abs=0.03)
    assert now[~before].mean() == pytest.approx(0.3, abs=0.03)
    z = (values - x.mean(0)) / x.std(0)
    held = np.diff(z, axis=0)[before & now]
    assert held.std() == pytest.approx(0.01, rel=0.1)


def test_short_series_and_small_precision_work() -> None:
    for rows, kind in itertools.product((2, 9, 50), SERIES_KINDS[1:]):
        x = series()[:rows].astype(np.float32)
        assert corrupt_series(x, kind, 0.3).values.dtype == np.float32


@pytest.mark.parametrize(
    ("values", "kind", "ratio", "message"),
    [
        (np.zeros(5), "mix", 0.1, r"\[T, C\]"),
        (np.zeros((5, 2), dtype=int), "mix", 0.1, r"\[T, C\]"),
        (np.zeros((5, 2)), "rust", 0.1, "no fault 'rust'"),
        (np.zeros((5, 2)), "mix", 1.1, "between 0 and 1"),
    ],
)
def test_wrong_arguments_get_one_sentence(
    values: np.ndarray, kind: str, ratio: float, message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        corrupt_series(values, kind, ratio)


def test_draws_are_those_that_the_results_of_detection_were_made_with() -> None:
    x = np.sin(np.arange(400)[:, None] / [5.0, 9.0]) * [1.0, 30.0] + [0.0, 7.0]
    for kind, total, count in (("mix", 3088.8789162482335, 300), ("all", -537651.28374060, 326)):
        values, broken, _ = corrupt_series(x, kind, 0.3, seed=7)
        assert np.nansum(values) == pytest.approx(total, rel=1e-12)
        assert broken.sum() == count


def test_severity_scales() -> None:
    x = series()
    small, large = (corrupt_series(x, "burst", 0.1, severity=s) for s in (0.5, 2))
    assert np.array_equal(small.corrupted, large.corrupted)
    assert (large.values - x)[large.corrupted] == pytest.approx(
        4 * (small.values - x)[small.corrupted]
    )
    with pytest.raises(ArgumentError, match="severity must be a positive number"):
        corrupt_series(x, "burst", 0.1, severity=0)


def test_a_fault_of_labels_is_refused_for_series() -> None:
    with pytest.raises(ArgumentError, match=r"not defined for series: use .*missing"):
        corrupt_series(series(), "symmetric", 0.1)
