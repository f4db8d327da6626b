from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sacm.data import anomaly_data
from sacm.errors import DataError


def telemetry(rows: int = 20) -> pd.DataFrame:
    stamps = pd.date_range("2024-01-01", periods=rows, freq="h")
    return pd.DataFrame({"date": stamps, "flow": np.arange(rows, dtype=float)})


def test_labels_follow_the_rows_of_a_test_table_out_of_order() -> None:
    test = telemetry()
    labels = (test["flow"] > 15).to_numpy().astype(int)
    shuffled = np.random.default_rng(0).permutation(20)
    data = anomaly_data(telemetry(), test.iloc[shuffled], labels=labels[shuffled])
    np.testing.assert_array_equal(data.test[:, 0], np.arange(20))
    np.testing.assert_array_equal(data.labels, labels)
    assert any("have been sorted" in note for note in data.notes)


def test_labels_of_the_test_part_stand_in_the_order_of_the_table() -> None:
    table = telemetry().iloc[::-1]  # the later half, which is tested, stands first
    data = anomaly_data(table, labels=[1, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    np.testing.assert_array_equal(data.test[:, 0], np.arange(10, 20))
    np.testing.assert_array_equal(data.labels, [0] * 9 + [1])


def test_a_label_column_follows_its_rows() -> None:
    table = telemetry().assign(label=[0] * 18 + [1, 1]).iloc[::-1]
    data = anomaly_data(table)
    np.testing.assert_array_equal(data.labels, [0] * 8 + [1, 1])


def test_labels_must_be_one_a_row() -> None:
    with pytest.raises(DataError, match="3 labels for 10 test rows"):
        anomaly_data(telemetry(), labels=[0, 1, 0])


def test_rows_that_a_grid_lacks_stay_away() -> None:
    table = telemetry().drop(index=[3, 15])
    data = anomaly_data(table, labels=np.zeros(9))
    assert (len(data.train), len(data.test)) == (9, 9)
    assert data.notes == ()


@pytest.mark.parametrize("later", [0.0, 1e6])
def test_no_gap_is_filled_from_a_later_part(later: float) -> None:
    values = np.arange(40, dtype=np.float64)
    values[[15, 19]] = np.nan  # ends of the training part and of the validation part
    values[16:19] += later
    values[20:] += later
    data = anomaly_data(values[:, None])
    assert data.train[15, 0] == 14  # not 15, which row 16 would make of it
    assert data.train[19, 0] == 18 + later
    two = anomaly_data(values[:20, None], values[20:, None])
    np.testing.assert_array_equal(two.train, data.train)
    np.testing.assert_array_equal(two.test, data.test)


def test_a_part_without_any_value_repeats_the_last_before_it() -> None:
    values = np.arange(40, dtype=np.float64)
    values[20:] = np.nan
    assert (anomaly_data(values[:, None]).test == 19).all()
    with pytest.raises(DataError, match="column '0' has no value in rows 1 to 16"):
        anomaly_data(values[::-1, None])


def test_the_users_array_stays_as_it_was() -> None:
    values = np.arange(40, dtype=np.float32)[:, None]
    values[7] = np.nan
    assert np.isfinite(anomaly_data(values).train).all()
    assert np.isnan(values[7])
