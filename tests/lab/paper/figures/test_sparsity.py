from __future__ import annotations

import numpy as np
import pytest

from sacm_lab.paper.figures import sparsity
from sacm_lab.paper.figures.modes import correlation
from sacm_lab.paper.figures.signals import CORRUPTIONS, RATE


def kept_hertz(kind, corruption):
    clean, _, modes = sparsity.rebuilt(kind, corruption)
    return np.fft.rfftfreq(len(clean), 1 / RATE)[modes.kept][1:], modes


@pytest.mark.parametrize("corruption", CORRUPTIONS)
def test_the_peaks_are_where_the_formulas_put_them(corruption):
    hertz, modes = kept_hertz("periodic", corruption)
    strongest = np.argsort(-modes.amplitude)[:2] / 10  # bins of a tenth of a hertz
    assert sorted(strongest) == [0.5, 2.0]
    assert {0.5, 2.0} <= set(hertz.round(6))
    carrier_and_sidebands, _ = kept_hertz("am", corruption)
    assert {1.8, 2.0, 2.2} <= set(carrier_and_sidebands.round(6))


@pytest.mark.parametrize("kind", ["periodic", "trend", "chirp", "am"])
@pytest.mark.parametrize("corruption", CORRUPTIONS)
def test_families_are_recovered_better_than_they_were_observed(kind, corruption):
    clean, worse, modes = sparsity.rebuilt(kind, corruption)
    assert correlation(modes.rebuilt, clean) > max(0.95, correlation(worse, clean))


@pytest.mark.parametrize("corruption", CORRUPTIONS)
def test_one_percent_recovers_most_of_the_composite(corruption):
    clean, _, modes = sparsity.rebuilt("composite", corruption)
    assert modes.kept[1:].sum() == 5
    assert correlation(modes.rebuilt, clean) > 0.89


def test_a_row_shows_input_spectrum_and_reconstruction():
    figure = sparsity.trend()
    assert len(figure.axes) == 9
    clean, worse, modes = sparsity.rebuilt("trend", "student_t")
    row = figure.axes[3:6]
    np.testing.assert_array_equal(row[0].lines[0].get_ydata(), worse)
    np.testing.assert_array_equal(row[2].lines[0].get_ydata(), clean)
    np.testing.assert_array_equal(row[2].lines[1].get_ydata(), modes.rebuilt)
    assert row[2].get_title(loc="left").endswith(f"{correlation(modes.rebuilt, clean):.3f}")
    assert figure.axes[1].get_title(loc="left") == "amplitude after detrending"
