"""Large but natural: tails, beats and rests at a bound are left alone."""

from __future__ import annotations

import numpy as np

from sacm.quality.kinds import BURST, SPIKE
from sacm.quality.series import SeriesDetector
from sacm.quality.series.beats import find_beat
from sacm.quality.series.local import far_cut
from sacm.quality.series.runs import find_stuck, fit_runs
from sacm.quality.series.weibull_cut import tail_factor, weibull_cut


def flag_share(values: np.ndarray) -> float:
    return float(np.mean(SeriesDetector().fit(values[:, None]).detect(values[:, None]) > 0))


def test_a_long_tail_moves_the_cut_and_faults_that_stand_apart_do_not() -> None:
    generator = np.random.default_rng(0)
    tailed = np.abs(generator.standard_t(2, 5000))
    assert tail_factor(tailed, weibull_cut(np.abs(generator.standard_normal(5000)), 1e-4)) > 2
    body = np.abs(generator.standard_normal(5000))
    faulty = np.concatenate([body, generator.uniform(20, 60, 400)])
    assert tail_factor(faulty, weibull_cut(faulty, 1e-4)) == 1


def test_sharp_events_in_a_steady_beat_are_natural_and_random_ones_are_not() -> None:
    generator = np.random.default_rng(1)
    steady = np.cumsum(generator.integers(70, 90, 60))
    anywhere = np.sort(generator.choice(4900, 60, replace=False))
    size = np.ones(5000)
    for rows, natural in ((steady, True), (anywhere, False)):
        flags = np.zeros(5000, np.uint8)
        flags[rows], flags[rows + 1] = SPIKE, BURST
        spike, burst = find_beat([flags], [9 * size], [7 * size])
        assert (spike > 9 and burst > 7) is natural


def test_humidity_that_stays_at_its_bound_is_natural() -> None:
    generator = np.random.default_rng(3)
    wave = 98 + 4 * np.sin(np.arange(6000) / 60) + 0.1 * generator.standard_normal(6000)
    assert flag_share(np.round(np.minimum(wave, 100.0), 2)) <= 0.01


def make_movements(seed: int = 0) -> list[np.ndarray]:
    """Fifty cases of 200 rows: an arm slows down, rests and moves on; two digits."""
    generator = np.random.default_rng(seed)
    cases = []
    for _ in range(50):
        first, last = generator.integers(60, 100), generator.integers(120, 150)
        away = np.maximum(first - np.arange(200), np.arange(200) - last)
        speed = np.clip(away / 40, 0, 1) ** 2
        cases.append(np.round((0.3 * speed * generator.standard_normal(200)).cumsum(), 2))
    return cases


def test_an_arm_at_rest_is_natural_and_a_stuck_sensor_is_not() -> None:
    cases = make_movements()
    model = fit_runs(cases, float(np.concatenate(cases).std()))
    assert model.near > 0
    assert not any(find_stuck(case, model).any() for case in cases)
    held = cases[0].copy()
    held[20:50] = held[20]
    assert list(np.flatnonzero(find_stuck(held, model))) == list(range(20, 50))


def test_sensors_that_hang_do_not_make_rests_natural() -> None:
    generator = np.random.default_rng(2)
    values = np.round(generator.standard_normal(4000), 2)
    for first in range(100, 3900, 200):
        values[first : first + 30] = values[first]
    model = fit_runs([values], 1.0)
    assert model.near == 0
    assert find_stuck(values, model).sum() == 19 * 30


def test_what_is_far_out_of_all_residuals_needs_no_calm_around_it() -> None:
    generator = np.random.default_rng(5)
    natural = np.abs(generator.normal(0, 0.25, 5000))
    faults = generator.uniform(3, 8, 400)
    assert 1 < far_cut(np.concatenate([natural, faults]), 1.0) < 3
    tailed = np.abs(generator.standard_t(2, 20_000))
    assert np.mean(tailed > far_cut(tailed, 1.0)) <= 2e-4
