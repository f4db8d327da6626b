"""Ordinary cleaning finds plain faults and leaves test rows alone."""

from __future__ import annotations

import numpy as np
import pytest

from sacm.data import forecasting_data
from sacm.errors import ArgumentError
from sacm.strategies.registry import parse

ROWS = 1000


def make_rows() -> np.ndarray:
    generator = np.random.default_rng(0)
    phase = 2 * np.pi * np.arange(ROWS)[:, None] / 24 + np.arange(2)
    return 5 + np.sin(phase) + 0.05 * generator.standard_normal((ROWS, 2))


@pytest.mark.parametrize(
    ("how", "broken"),
    [("hampel", slice(300, 301)), ("rules", slice(300, 340)), ("tsclean", slice(300, 302))],
)
def test_faults_are_filled_and_their_targets_dropped(how: str, broken: slice) -> None:
    clean, values = make_rows(), make_rows()
    values[broken, 0] = 0.0
    values[-5:, 1] = 0.0  # test rows
    data = forecasting_data(values, name="x")
    found = parse(f"clean(how={how})").prepare(data, window=48).data
    assert np.abs(found.values[broken, 0] - clean[broken, 0]).mean() < 1
    assert (np.asarray(found.observed)[broken, 0] == 0).all()
    np.testing.assert_array_equal(found.values[-100:], data.values[-100:])
    kept = parse(f"clean(how={how},drop=false)").prepare(data, window=48).data
    assert (np.asarray(kept.observed) == 1).all()


def test_an_unknown_way_is_refused() -> None:
    with pytest.raises(ArgumentError, match="must be hampel, rules, tsclean"):
        parse("clean(how=none)")
