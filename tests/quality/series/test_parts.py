"""The parts of the detector and the repairer against independent formulas."""

from __future__ import annotations

import numpy as np
import pytest

from sacm.quality.kinds import KINDS, MISSING, SPIKE, STUCK
from sacm.quality.series import Event, events, reliability
from sacm.quality.series.angles import is_angle
from sacm.quality.series.arrays import count_distinct, fill_forward, find_stretches
from sacm.quality.series.bridge import Persistence, bridge_gaps, fit_persistence
from sacm.quality.series.causal import backward_residual
from sacm.quality.series.codes import find_codes
from sacm.quality.series.limits import find_limits
from sacm.quality.series.phases import phase_median
from sacm.quality.series.residuals import neighbour_residual
from sacm.quality.series.running import five_medians, running_median
from sacm.quality.series.runs import find_runs, find_stuck, find_stuck_so_far, fit_runs
from sacm.quality.series.season import find_season
from sacm.quality.series.weibull_cut import weibull_cut


def test_the_names_of_the_kinds_are_their_positions() -> None:
    assert KINDS == (
        "good", "missing", "code", "stuck", "spike", "burst", "shift", "range", "clipped",
    )  # fmt: skip


def test_the_cut_of_half_normal_sizes_is_five_deviations() -> None:
    sizes = np.abs(np.random.default_rng(0).standard_normal(200_000))
    assert weibull_cut(sizes, 1e-4) == pytest.approx(5.2, abs=0.1)
    spoilt = np.concatenate([sizes, np.full(30_000, 50.0)])
    assert weibull_cut(spoilt, 1e-4) < 2 * weibull_cut(sizes, 1e-4)


def test_the_cut_of_exponential_sizes_is_their_quantile() -> None:
    sizes = np.random.default_rng(1).exponential(2.0, 400_000)
    assert weibull_cut(sizes, 1e-3) == pytest.approx(-2 * np.log(1e-3), rel=0.03)


def test_trailing_medians_use_the_rows_up_to_each_row() -> None:
    values = np.random.default_rng(0).standard_normal(60)
    trailing = running_median(values, 11, trailing=True)
    for row in range(10, 60):
        assert trailing[row] == np.median(values[row - 10 : row + 1])
    centred = running_median(values, 11)
    for row in range(5, 55):
        assert centred[row] == np.median(values[row - 5 : row + 6])


def test_five_medians_are_medians() -> None:
    values = np.random.default_rng(0).standard_normal(300)
    windows = np.lib.stride_tricks.sliding_window_view(values, 5)
    np.testing.assert_array_equal(five_medians(values), np.median(windows, axis=1))


def test_stretches_are_joined_over_short_gaps() -> None:
    mask = np.array([1, 1, 0, 1, 0, 0, 0, 1], bool)
    starts, stops = find_stretches(mask)
    assert list(zip(starts, stops, strict=True)) == [(0, 2), (3, 4), (7, 8)]
    starts, stops = find_stretches(mask, join=1)
    assert list(zip(starts, stops, strict=True)) == [(0, 4), (7, 8)]


def test_forward_filling_repeats_the_last_good_value() -> None:
    values, good = np.array([9.0, 1, 2, 3, 4]), np.array([0, 1, 0, 0, 1], bool)
    assert list(fill_forward(values, good)) == [0, 1, 1, 1, 4]


def test_cubics_have_no_residual_and_spikes_have_their_size() -> None:
    time = np.arange(50.0)
    assert np.abs(neighbour_residual(0.01 * time**3 - time))[2:-2].max() < 1e-9
    flat = np.zeros(50)
    flat[20] = 7
    assert neighbour_residual(flat)[20] == 7
    assert np.abs(np.delete(neighbour_residual(flat), 20)).max() == 0


def test_lines_have_no_backward_residual() -> None:
    time = np.arange(50.0)
    assert np.abs(backward_residual(3 * time)).max() == 0


def test_codes_stand_apart_and_repeat() -> None:
    values = np.random.default_rng(0).uniform(0, 10, 500)
    assert find_codes(np.sort(values)) == ()
    assert find_codes(np.sort(np.concatenate([values, [-999.0] * 3]))) == (-999.0,)
    assert find_codes(np.sort(np.concatenate([values, [-777.0] * 2]))) == ()
    assert find_codes(np.sort(np.concatenate([values, [-9999.0]]))) == (-9999.0,)
    assert find_codes(np.sort(np.concatenate([values, [-2.0] * 9]))) == (-2.0,)
    assert find_codes(np.sort(np.concatenate([values - 3, [-5.0] * 9]))) == ()
    both = find_codes(np.sort(np.concatenate([values, [-99.0] * 3, [1e6] * 4])))
    assert set(both) == {-99.0, 1e6}


def test_among_few_values_only_customary_codes_are_told() -> None:
    switch = np.repeat([0.0, 1.0], 50)
    assert find_codes(np.sort(np.concatenate([switch, [-9999.0] * 3]))) == (-9999.0,)
    assert find_codes(np.sort(np.concatenate([switch, [-77.0] * 3]))) == ()
    assert find_codes(np.full(50, -9999.0)) == ()


def test_distinct_values_are_counted() -> None:
    values = np.sort(np.random.default_rng(0).integers(0, 9, 100).astype(float))
    for mine, theirs in zip(
        count_distinct(values), np.unique(values, return_counts=True), strict=True
    ):
        np.testing.assert_array_equal(mine, theirs)


def test_the_value_that_a_channel_holds_is_within_its_limits() -> None:
    values = np.concatenate([np.zeros(900), np.full(99, 5.0), [5.1]])
    low, high = find_limits(values)
    assert low <= 0 <= high


def test_limits_of_a_mostly_constant_channel_are_open() -> None:
    values = np.zeros(1000)
    values[:10] = 5
    assert find_limits(values) == (-np.inf, np.inf)


def test_a_spike_inside_a_held_stretch_does_not_end_the_run() -> None:
    values = np.array([1.0, 2, 5, 5, 5, 9, 5, 5, 5, 3])
    starts, stops = find_runs(values)
    assert (2, 9) in set(zip(starts.tolist(), stops.tolist(), strict=True))


def test_one_long_outage_does_not_become_natural() -> None:
    values = np.random.default_rng(0).standard_normal(3000)
    values[500:1900] = values[500]
    model = fit_runs([values], 1.0)
    assert find_stuck(values, model)[500:1900].all()
    assert find_stuck(values, model).sum() == 1400
    so_far = find_stuck_so_far(values, model)
    assert so_far[500 + model.longest - 1 : 1900].all()
    assert not so_far[: 500 + model.longest - 1].any()


def test_the_median_by_phase_ignores_bad_values() -> None:
    values = np.tile(np.arange(6.0), 20)
    good = np.ones(120, bool)
    values[7], good[7] = 1e9, False
    np.testing.assert_array_equal(phase_median([values], [good], [0], 6), np.arange(6.0))
    shifted = phase_median([values[2:]], [good[2:]], [2], 6)
    np.testing.assert_array_equal(shifted, np.arange(6.0))


@pytest.mark.parametrize("period", [7, 24, 96])
def test_a_season_is_found_in_noise_with_a_third_of_it_bad(period: int) -> None:
    generator = np.random.default_rng(0)
    shape = generator.standard_normal(period)
    values = np.tile(shape, 3000 // period)[:, None] + generator.standard_normal(
        (3000 // period * period, 2)
    )
    good = generator.random(values.shape) > 0.3
    assert find_season(np.where(good, values, 1e3), good).period == period


def test_no_season_is_found_in_a_random_walk() -> None:
    found = [
        find_season(
            np.random.default_rng(seed).standard_normal((4000, 1)).cumsum(axis=0),
            np.ones((4000, 1), bool),
        ).period
        for seed in range(10)
    ]
    assert sum(period > 0 for period in found) <= 1


def test_bridges_are_the_best_linear_prediction() -> None:
    generator = np.random.default_rng(0)
    rest = generator.standard_normal(40)
    good = np.ones(40, bool)
    good[[10, 11, 12, 20, 38, 39]] = False
    model = Persistence(0.9, 0.7)
    filled = bridge_gaps(rest, good, model)
    known = np.array([6, 7, 8, 9, 13, 14, 15, 16])
    gaps = np.abs(np.subtract.outer(known, known))
    covariance = 0.7 * 0.9**gaps + 0.3 * np.eye(8)
    towards = 0.7 * 0.9 ** np.abs(11 - known)
    assert filled[11] == pytest.approx(towards @ np.linalg.solve(covariance, rest[known]))
    np.testing.assert_array_equal(filled[good], rest[good])
    before = np.array([34, 35, 36, 37])
    inner = 0.7 * 0.9 ** np.abs(np.subtract.outer(before, before)) + 0.3 * np.eye(4)
    expected = (0.7 * 0.9 ** (38 - before)) @ np.linalg.solve(inner, rest[before])
    assert filled[38] == pytest.approx(expected)


def test_persistence_is_recovered() -> None:
    generator = np.random.default_rng(0)
    slow = np.zeros(40_000)
    for row in range(1, len(slow)):
        slow[row] = 0.95 * slow[row - 1] + generator.standard_normal()
    noisy = slow + np.sqrt(slow.var() / 4) * generator.standard_normal(len(slow))
    model = fit_persistence([noisy], [np.ones(len(slow), bool)])
    assert model.fade == 0.95
    assert model.share == pytest.approx(0.8, abs=0.04)


def test_events_have_kind_place_and_severity() -> None:
    values = np.tile(np.array([[0.0, 10.0], [1.0, 11.0]]), (50, 1))
    flags = np.zeros((100, 2), np.uint8)
    flags[10:20, 0] = STUCK
    flags[30:32, 1] = SPIKE
    flags[40:42, 0] = MISSING
    values[30, 1] = 60.0
    found = events(flags, values)
    assert [(e.channel, e.kind, e.first, e.last) for e in found] == [
        (0, "stuck", 10, 19),
        (1, "spike", 30, 30),
        (1, "spike", 31, 31),
        (0, "missing", 40, 41),
    ]
    assert found[1].severity > 10 * found[2].severity
    split = events(flags, values, pieces=[range(15), range(15, 100)])
    assert isinstance(split[0], Event)
    assert (split[0].last, split[1].first) == (14, 15)


def test_reliability_falls_with_uncertainty() -> None:
    flags = np.array([[0, 1], [1, 1]])
    trust = reliability(flags, np.array([[0.0, 1.0], [0.5, np.inf]]), np.array([1.0, 2.0]))
    np.testing.assert_allclose(trust, [[1, np.exp(-1)], [np.exp(-1), 0]])
    assert reliability([[1]], [[0.3]], [0.0])[0, 0] == 0


def test_an_angle_wraps_and_a_series_with_large_outliers_does_not() -> None:
    generator = np.random.default_rng(0)
    angle = (15 * generator.standard_normal(3000).cumsum()) % 360
    assert is_angle([angle])
    assert is_angle([angle - 180])
    values = 9 * generator.standard_normal(3000)
    hit = generator.random(3000) < 0.1
    values[hit] += generator.choice([-1, 1], hit.sum()) * generator.uniform(110, 360, hit.sum())
    assert not is_angle([values])
