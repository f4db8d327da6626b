from __future__ import annotations

import numpy as np
import pandas as pd

from sacm.data import anomaly_data
from sacm.data.scaling import fill_data


def telemetry(rows: int = 20) -> pd.DataFrame:
    stamps = pd.date_range("2024-01-01", periods=rows, freq="h")
    return pd.DataFrame({"date": stamps, "flow": np.arange(rows, dtype=float)})


def test_a_label_column_follows_its_rows() -> None:
    table = telemetry().assign(label=[0] * 18 + [1, 1])
    shuffled = np.random.default_rng(0).permutation(20)
    for other in (table.iloc[::-1], table.iloc[shuffled]):
        data = anomaly_data(other)
        np.testing.assert_array_equal(data.test[:, 0], np.arange(10, 20))
        np.testing.assert_array_equal(data.labels, [0] * 8 + [1, 1])
        assert any("were" in note for note in data.notes)


def test_rows_that_a_grid_lacks_stay_away() -> None:
    table = telemetry().drop(index=[3, 15])
    data = anomaly_data(table)
    assert (len(data.train), len(data.test)) == (9, 9)
    assert data.notes[0].startswith("2 of 20 rows on the grid of step h are missing")


def test_the_users_array_stays_as_it_was() -> None:
    values = np.arange(40, dtype=np.float32)[:, None]
    values[7] = np.nan
    data, note = fill_data(anomaly_data(values))
    assert np.isfinite(data.train).all()
    assert "were not measured" in note
    assert np.isnan(values[7])
