"""The oracle: it changes what was broken on purpose, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from sacm.data import corrupt_training, forecasting_data
from sacm.strategies.registry import parse
from tests.training.cases import waves


@pytest.fixture(scope="module")
def broken() -> object:
    return corrupt_training(forecasting_data(waves(900, 2), name="waves"), "shift(0.2)", seed=1)


def test_broken_values_are_repaired_and_weigh_less(broken: object) -> None:
    data = broken
    repaired = parse("oracle").prepare(data, window=24).data
    changed = repaired.values != data.values
    assert changed.any()
    assert not (changed & ~data.broken).any()
    clean = forecasting_data(waves(900, 2), name="waves").values
    error, before = (np.abs(v - clean)[data.broken].mean() for v in (repaired.values, data.values))
    assert error < 0.4 * before
    assert (repaired.observed[data.broken] < 1).all()
    assert (repaired.observed[~data.broken] == 1).all()


def test_weights_alone_leave_values_as_they_are(broken: object) -> None:
    weighed = parse("oracle(repair=false)").prepare(broken, window=24).data
    np.testing.assert_array_equal(weighed.values, broken.values)
    np.testing.assert_array_equal(weighed.observed == 0, broken.broken)


def test_on_clean_data_there_is_nothing_to_know() -> None:
    data = forecasting_data(waves(300, 2), name="waves")
    assert parse("oracle").prepare(data, window=24).data is data
