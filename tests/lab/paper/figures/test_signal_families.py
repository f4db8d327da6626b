from __future__ import annotations

import numpy as np
import pytest

from sacm.errors import ArgumentError
from sacm_lab.paper.figures.signal_families import signal


def test_trend_is_a_line_and_the_tones():
    line = signal("trend") - signal("periodic")
    np.testing.assert_allclose(np.diff(line, 2), 0, atol=1e-12)
    assert line[-1] > line[0]


def test_chirp_speeds_up():
    crossings = np.flatnonzero(np.diff(np.sign(signal("chirp"))))
    gaps = np.diff(crossings)
    assert gaps[0] > 3 * gaps[-1]


def test_composite_is_the_sum():
    parts = signal("trend") + signal("chirp") + signal("am")
    np.testing.assert_allclose(signal("composite"), parts)


def test_bad_arguments():
    with pytest.raises(ArgumentError, match="no signal 'square'"):
        signal("square")
    with pytest.raises(ArgumentError, match="fewer than two"):
        signal("chirp", seconds=0.001)
