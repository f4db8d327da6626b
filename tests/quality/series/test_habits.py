"""Large but natural: tails, beats and rests at a bound are left alone."""

from __future__ import annotations

import numpy as np

from sacm.quality.kinds import BURST, SPIKE
from sacm.quality.series import SeriesDetector
from sacm.quality.series.beats import find_beat
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
