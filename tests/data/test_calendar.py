from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sacm.data.covariates import calendar_sizes, future_timestamps, stamp_features


@given(st.integers(-(10**9), 4 * 10**9))
def test_features_equal_those_of_pandas(seconds):
    stamp = pd.Timestamp(seconds, unit="s")
    expected = [
        (stamp.hour * 3600 + stamp.minute * 60 + stamp.second) / 86_400,
        stamp.dayofweek / 7,
        (stamp.day - 1) / 31,
        (stamp.dayofyear - 1) / 366,
    ]
    found = stamp_features(np.array([stamp.to_datetime64()]))
    np.testing.assert_allclose(found[0], expected, rtol=1e-6)
    assert ((found >= 0) & (found < 1)).all()


@pytest.mark.parametrize(
    ("frequency", "steps"), [("h", 24), ("15min", 96), ("10min", 144), ("W-TUE", 60), ("s", 1440)]
)
def test_table_sizes(frequency, steps):
    stamps = pd.date_range("2020-01-01", periods=50, freq=frequency).to_numpy()
    assert calendar_sizes(stamps) == (steps, 7, 31, 366)


def test_future_without_a_frequency_repeats_the_last_step():
    stamps = np.array(["2020-01-01T00", "2020-01-01T03"], dtype="datetime64[s]")
    expected = np.array(["2020-01-01T06", "2020-01-01T09"], dtype="datetime64[s]")
    np.testing.assert_array_equal(future_timestamps(stamps, 2, None), expected)
