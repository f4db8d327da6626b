from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from sacm.data import anomaly_data, forecasting_data
from sacm.errors import DataError

WAVE = np.sin(np.arange(200.0))
COARSE = (
    "Column {!r} spans 2 at a level of 1.7e+09, where float32 has steps of 128: its changes are "
    "lost unless you subtract an offset first."
)


@pytest.mark.parametrize("read", [forecasting_data, anomaly_data])
def test_changes_that_float32_cannot_hold_are_named(read):
    frame = pd.DataFrame({"calm": WAVE, "far": 1.7e9 + WAVE})
    assert COARSE.format("far") in read(frame).notes
    assert COARSE.format("1") in read(frame.to_numpy()).notes
    near = frame.assign(far=frame["far"] - 1.7e9)
    assert not any("float32" in note for note in read(near).notes)


def test_of_a_panel_the_series_is_named():
    stamps = pd.date_range("2024-01-01", periods=200, freq="h")
    frame = pd.DataFrame({"unique_id": "far", "ds": stamps, "y": 1.7e9 + WAVE})
    (note,) = forecasting_data(frame).notes
    assert note.startswith("Series 'far': Column 'y' spans 2")


def test_constants_and_short_integers_are_not_coarse():
    frame = pd.DataFrame({"flat": np.full(50, 1.7e9), "count": np.arange(50), "wave": WAVE[:50]})
    assert not any("float32" in note for note in forecasting_data(frame).notes)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_infinity_is_refused_in_every_precision(kind):
    values = np.ones((20, 2), dtype=kind)
    values[6, 1] = np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DataError, match="row 7 of column 1 is inf, which is infinite"):
            forecasting_data(values)
