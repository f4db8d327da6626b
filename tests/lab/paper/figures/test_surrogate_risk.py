from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from sacm_lab.paper.figures import surrogate_risk as figure_of


def test_the_best_fixed_strength_is_that_of_an_optimiser():
    sigmas = figure_of.magnitudes()[:50]
    found = figure_of.fixed_strengths(sigmas)

    def mean_risk(strength):
        return float(np.mean(strength**2 + sigmas**2 / (1 + strength) ** 2))

    best = minimize_scalar(mean_risk, bounds=(1 / 19, 1), method="bounded").x
    assert found.strengths[found.best] == pytest.approx(best, abs=0.011)
    assert found.strengths[[0, -1]] == pytest.approx([0.05 / 0.95, 1])


def test_the_oracle_is_marked_at_the_bottom_of_each_curve():
    risk = figure_of.draw().axes[0]
    curves, marks = risk.lines[::2], risk.lines[1::2]
    assert len(curves) == len(figure_of.SIGMAS)
    for curve, mark in zip(curves, marks, strict=True):
        lowest = np.argmin(curve.get_ydata())
        assert mark.get_xdata()[0] == pytest.approx(curve.get_xdata()[lowest], abs=0.01)
        assert mark.get_ydata()[0] <= curve.get_ydata()[lowest] + 1e-12
    assert len({mark.get_marker() for mark in marks}) == len(marks)
