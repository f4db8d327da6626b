from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import gmean, pearsonr

from sacm.errors import DataError
from sacm_lab.paper.figures import proxy_snr as figure_of


def wave_in_noise(noise, seed=0):
    time = np.arange(512.0)[:, None]
    waves = np.sin(2 * np.pi * time / [16, 32])
    return waves + noise * np.random.default_rng(seed).standard_normal((512, 2))


def test_both_numbers_are_those_of_their_definitions():
    values = wave_in_noise(0.3)
    top = rest = 0.0
    flats = []
    for channel in values.T:
        powers = np.abs(np.fft.fft((channel - channel.mean()) / channel.std()))[1:257] ** 2
        ordered = sorted(powers, reverse=True)
        top, rest = top + sum(ordered[:26]), rest + sum(ordered[26:])
        flats.append(gmean(powers) / powers.mean())
    assert figure_of.proxy_snr(values) == pytest.approx(10 * math.log10(top / rest))
    assert figure_of.mean_flatness(values) == pytest.approx(np.mean(flats))


def test_neither_units_nor_levels_nor_constant_channels_matter():
    values = wave_in_noise(0.3)
    moved = np.column_stack([values * [1000, 0.01] + [5, -80], np.full(512, 7.0)])
    assert figure_of.proxy_snr(moved) == pytest.approx(figure_of.proxy_snr(values))
    assert figure_of.mean_flatness(moved) == pytest.approx(figure_of.mean_flatness(values))
    with pytest.raises(DataError, match="all 2 channels are constant"):
        figure_of.mean_flatness(np.ones((50, 2)))


def test_white_noise_is_flat_and_more_noise_is_flatter():
    # The mean logarithm of an exponential variable is minus Euler's constant.
    noise = np.random.default_rng(0).standard_normal((20_000, 1))
    assert figure_of.mean_flatness(noise) == pytest.approx(math.exp(-np.euler_gamma), abs=0.02)
    levels = (0.02, 0.1, 0.5, 2.0)
    found = figure_of.concentration({str(n): wave_in_noise(n) for n in levels})
    assert (np.diff(found.flatness) > 0).all()
    assert (np.diff(found.snr) < 0).all()
    assert found.r < -0.7
    assert (found.r, found.p_value) == pytest.approx(tuple(pearsonr(found.snr, found.flatness)))


def test_the_figure_says_what_it_shows_and_what_is_missing(three_sets):
    figure = figure_of.draw()
    bars, scatter, ranks = figure.axes
    assert [label.get_text() for label in bars.get_yticklabels()] == ["ETTh1", "ETTh2", "ETTm1"]
    assert len(bars.patches) == 3
    assert "n = 3" in scatter.get_title(loc="left")
    assert [list(line.get_ydata()) for line in ranks.lines] == [[1, 1], [2, 2], [3, 3]]
    note = " ".join(figure.get_supxlabel().split())
    assert "ETTm2, Weather, Electricity, Exchange Rate, ILI, ECG are not on this machine" in note


def test_two_sets_have_no_correlation(three_sets):
    (three_sets / "ETTm1.csv").unlink()
    with pytest.raises(DataError, match=r"2 of the 9 .* needs 3: .*sacm data get"):
        figure_of.draw()
