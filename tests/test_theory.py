from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize_scalar

from sacm import theory

rates = st.floats(0, 0.99)
positive = st.floats(1e-3, 1e3)
sigmas = st.floats(0, 1e3)


@given(rates)
def test_strength_is_the_variance_of_the_inverted_mask(p: float) -> None:
    q = 1 - p  # B / q is 1 / q with probability q, else 0
    variance = q * (1 / q - 1) ** 2 + p * 1
    assert theory.regularization_strength(p) == pytest.approx(variance, rel=1e-9, abs=1e-12)


def test_width_shrinks_with_the_rate() -> None:
    np.testing.assert_allclose(theory.active_width([0.0, 0.25, 0.5], 512), [512, 384, 256])


def test_risk_is_bias_plus_variance() -> None:
    assert theory.surrogate_risk(1.0, 3.0, c1=2.0, c2=4.0) == pytest.approx(2 + 4 * 9 / 4)


@given(sigmas, positive, positive, st.floats(0, 0.5), st.floats(0.51, 0.99))
def test_the_oracle_solves_its_equation_inside_the_bounds(
    sigma: float, c1: float, c2: float, p_min: float, p_max: float
) -> None:
    found = float(theory.oracle_strength(sigma, c1, c2, p_min, p_max))
    low, high = (float(theory.regularization_strength(p)) for p in (p_min, p_max))

    def balance(strength: float) -> float:
        return c1 * strength * (1 + strength) ** 3 - c2 * sigma**2

    if balance(low) >= 0:
        assert found == pytest.approx(low, abs=1e-12)
    elif balance(high) <= 0:
        assert found == high
    else:
        assert found == pytest.approx(brentq(balance, low, high, xtol=1e-14), rel=1e-7)


@pytest.mark.parametrize("sigma", [0.1, 0.7, 2.0, 30.0])
def test_the_oracle_minimises_the_surrogate_risk(sigma: float) -> None:
    low, high = theory.regularization_strength([0.05, 0.5])
    best = minimize_scalar(
        lambda s: float(theory.surrogate_risk(s, sigma, 1.0, 2.0)),
        bounds=(low, high),
        method="bounded",
        options={"xatol": 1e-10},
    )
    assert theory.oracle_strength(sigma, 1.0, 2.0, 0.05, 0.5) == pytest.approx(best.x, abs=1e-6)


def test_noisier_windows_deserve_more_regularisation() -> None:
    strengths = theory.oracle_strength(np.linspace(0, 5, 50), 1.0, 1.0, 0.0, 0.9)
    assert (np.diff(strengths) > 0).all()


@given(
    st.lists(st.floats(0, 50), min_size=1, max_size=20),
    st.floats(0, 5),
    positive,
    positive,
)
def test_a_fixed_rate_costs_at_least_the_variance_of_the_oracle(
    sigmas: list[float], fixed: float, c1: float, c2: float
) -> None:
    excess, bound = theory.excess_risk(fixed, sigmas, c1, c2, 0.0, 0.9)
    assert bound >= 0
    if fixed <= theory.regularization_strength(0.9):
        assert excess >= bound - 1e-6 * max(1.0, abs(excess), bound)


def test_one_kind_of_window_needs_no_adaptation() -> None:
    oracle = float(theory.oracle_strength(0.8, 1.0, 1.0, 0.05, 0.5))
    excess, bound = theory.excess_risk(oracle, [0.8] * 7, 1.0, 1.0, 0.05, 0.5)
    assert (excess, bound) == pytest.approx((0, 0), abs=1e-12)
