from __future__ import annotations

import numpy as np
import pytest

from sacm_lab.paper.figures import signals
from sacm_lab.paper.figures.signal_families import signal


def test_residuals_are_what_was_added():
    added = signals.residuals("periodic")
    clean = signal("periodic")
    assert added["gaussian"].std() / clean.std() == pytest.approx(0.3, rel=0.05)
    lost = added["missing"] != 0
    np.testing.assert_array_equal(added["missing"][lost], -clean[lost])
    assert 0.25 < lost.mean() < 0.35
    # Heavy tails: the largest spike is far beyond what Gaussian noise of this size reaches.
    assert np.abs(added["student_t"]).max() > 2 * np.abs(added["gaussian"]).max()
