from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import sacm
from tests.quality import tables


def plain(data: Any) -> np.ndarray:
    """Values `[T, C]` of a form of input, times left out."""
    if isinstance(data, Path):
        data = np.load(data) if data.suffix == ".npy" else data
        if isinstance(data, Path) and data.suffix == ".npz":
            data = np.load(data)["values"]
        elif isinstance(data, Path):
            csv = data.suffix == ".csv"
            exact = {"float_precision": "round_trip"}  # pandas' own reader is one unit off at times
            data = pd.read_csv(data, **exact) if csv else pd.read_parquet(data)  # type: ignore[call-overload]
    if hasattr(data, "to_pandas"):
        data = data.to_pandas()
    if isinstance(data, pd.DataFrame):
        data = data.drop(columns="date", errors="ignore").to_numpy()
    if isinstance(data, np.ma.MaskedArray):
        data = data.filled(np.nan)
    return np.asarray(data)


@pytest.mark.parametrize("form", tables.FORMS)
def test_every_form_gives_flags_events_and_repaired_values(form: str, tmp_path: Path) -> None:
    data = tables.FORMS[form](tmp_path)
    raw = plain(data)
    quality = sacm.inspect(data)
    truth = tables.truth()
    assert quality.flags.shape == truth.shape
    assert quality.flags.dtype == np.uint8
    found = quality.flags > 0
    assert (found & truth).sum() / truth.sum() > 0.9
    assert (found & ~truth).mean() < 0.01
    assert {"missing", "stuck", "spike"} <= {event.kind for event in quality.events}
    assert quality.reliability.shape == truth.shape
    assert (quality.reliability[~found] == 1).all()
    assert ((quality.reliability >= 0) & (quality.reliability < 1))[found].all()
    assert (quality.uncertainty[~found] == 0).all()
    assert (quality.uncertainty[found] > 0).all()
    repaired = plain(quality.repaired)
    assert repaired.dtype == raw.dtype
    assert np.isfinite(repaired).all()
    np.testing.assert_array_equal(repaired[~found], raw[~found])  # bit by bit
    error = np.abs(repaired - tables.healthy())[truth & found]
    assert error.mean() < 0.3


@pytest.mark.parametrize("form", [name for name in tables.FORMS if "frame" in name])
def test_frames_keep_columns_index_and_other_columns(form: str, tmp_path: Path) -> None:
    frame = tables.FORMS[form](tmp_path)
    before = frame.copy()
    repaired = sacm.inspect(frame).repaired
    pd.testing.assert_frame_equal(frame, before)  # the user's own table is left alone
    assert list(repaired.columns) == list(frame.columns)
    pd.testing.assert_index_equal(repaired.index, frame.index)
    assert repaired.dtypes.equals(frame.dtypes)
    if "date" in frame:
        pd.testing.assert_series_equal(repaired["date"], frame["date"])


def test_polars_comes_back_as_polars(tmp_path: Path) -> None:
    frame = tables.FORMS["polars"](tmp_path)
    repaired = sacm.inspect(frame).repaired
    assert type(repaired) is type(frame)
    assert repaired.schema == frame.schema
    assert repaired["date"].equals(frame["date"])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_tensors_keep_their_precision(dtype: torch.dtype) -> None:
    tensor = torch.from_numpy(tables.broken()).to(dtype)
    quality = sacm.inspect(tensor)
    repaired = quality.repaired
    assert repaired.dtype == dtype
    healthy = torch.from_numpy(quality.flags == 0)
    assert torch.equal(repaired[healthy], tensor[healthy])


def test_one_dimension_comes_back_with_one_dimension() -> None:
    for data in (tables.broken()[:, 0], torch.from_numpy(tables.broken()[:, 0])):
        repaired = sacm.inspect(data).repaired
        assert type(repaired) is type(data)
        assert repaired.shape == (tables.ROWS,)
    series = pd.Series(tables.broken()[:, 0], index=tables.hours(), name="load")
    repaired = sacm.inspect(series).repaired
    assert repaired.name == "load"
    pd.testing.assert_index_equal(repaired.index, series.index)


def test_unsorted_rows_come_back_in_the_users_order() -> None:
    frame = tables.wide()
    shuffled = frame.sample(frac=1, random_state=0)
    quality = sacm.inspect(shuffled)
    assert any("sorted" in note for note in quality.subject.notes)
    expected = sacm.inspect(frame).repaired
    pd.testing.assert_frame_equal(quality.repaired, expected.loc[shuffled.index])


def test_integers_become_floats_only_where_a_value_was_repaired() -> None:
    values = np.round(100 * np.nan_to_num(tables.healthy())).astype(np.int64)
    values[200, 0] = 9000
    frame = pd.DataFrame(values, columns=["a", "b"])
    repaired = sacm.inspect(frame).repaired
    assert repaired.dtypes.tolist() == [np.float64, np.int64]
    assert abs(repaired["a"][200]) < 200
    quality = sacm.inspect(values)
    good = quality.flags == 0
    assert quality.repaired.dtype == np.float64
    np.testing.assert_array_equal(quality.repaired[good], values[good])


def test_several_series_of_a_long_table_are_judged_apart() -> None:
    frame = tables.long()
    quality = sacm.inspect(frame)
    assert quality.flags.shape == (2 * tables.ROWS, 1)
    found = {(event.series, event.kind) for event in quality.events}
    assert {("a", "missing"), ("a", "spike"), ("b", "stuck")} <= found
    repaired = quality.repaired
    assert repaired.index.equals(frame.index)
    assert repaired["y"].notna().all()
    back = repaired.pivot(index="ds", columns="unique_id", values="y").to_numpy()
    good = ~tables.truth()
    share = (back == tables.broken())[good].mean()
    assert share > 0.99  # nearly nothing healthy was flagged, and what was not is bit-identical
    stuck = next(event for event in quality.events if event.kind == "stuck")
    assert stuck.first_time == tables.hours()[tables.STUCK.start]


def test_forecasting_data_learn_from_their_training_rows() -> None:
    data = tables.forecasting()
    quality = sacm.inspect(data)
    assert {"missing", "stuck", "spike"} <= {event.kind for event in quality.events}
    repaired = quality.repaired
    assert isinstance(repaired, sacm.data.ForecastingData)
    good = quality.flags == 0
    np.testing.assert_array_equal(repaired.values[good], data.values[good])
    assert repaired.values.dtype == np.float32
    assert (repaired.values[~good] != data.values[~good]).mean() > 0.9
    assert quality.guard.clock_.ends["waves"].rows == len(data.splits.train)


def test_anomalies_of_test_rows_are_never_repaired() -> None:
    data = tables.anomaly()
    quality = sacm.inspect(data)
    assert (quality.flags[tables.ROWS :] > 0).any()  # they are found ...
    repaired = quality.repaired
    np.testing.assert_array_equal(repaired.test, data.test)  # ... and left as they are
    assert not np.array_equal(repaired.train, data.train)
    assert any("Test rows stay" in sentence for sentence in quality.sentences())


def test_cases_keep_their_shape_and_lengths() -> None:
    data = tables.classification()
    quality = sacm.inspect(data)
    assert quality.flags.shape == (19 * 60 + 50 + 10 * 60, 2)
    spike = next(event for event in quality.events if event.kind == "spike")
    assert spike.series == "training case 4"
    repaired = quality.repaired
    assert repaired.X_train.shape == data.X_train.shape
    assert abs(repaired.X_train[3, 0, 20]) < 2
    assert np.isnan(repaired.X_train[4, 1, 50:]).all()
    np.testing.assert_array_equal(repaired.X_test[5], data.X_test[5])


def test_training_rows_can_be_a_share_a_number_or_a_range() -> None:
    values = tables.broken()
    by_share = sacm.inspect(values, train=0.5)
    for train in (200, np.int64(200), range(200), slice(None, 200)):
        same = sacm.inspect(values, train=train)
        np.testing.assert_array_equal(same.flags, by_share.flags)
        np.testing.assert_array_equal(same.values, by_share.values)


def test_higher_sensitivity_flags_more() -> None:
    values = tables.healthy(2000)
    shares = [sacm.inspect(values, sensitivity=s).share for s in (0.5, 1.0, 3.0)]
    assert shares[0] <= shares[1] < shares[2]
    assert shares[1] <= 0.01


def test_events_as_a_frame() -> None:
    quality = sacm.inspect(tables.wide())
    frame = quality.to_frame()
    assert list(frame.columns) == [
        *("channel", "kind", "first", "last", "rows", "first_time", "last_time", "severity"),
    ]
    assert len(frame) == len(quality.events)
    gap = frame[(frame["kind"] == "missing")].iloc[0]
    assert (gap["channel"], gap["first"], gap["last"], gap["rows"]) == ("load", 60, 65, 6)
    assert gap["first_time"] == tables.hours()[60]
    assert "first_time" not in sacm.inspect(tables.broken()).to_frame()
    assert "series" in sacm.inspect(tables.long()).to_frame()


def test_small_changes_at_a_high_level_are_not_taken_for_a_stuck_sensor() -> None:
    values = 1e9 + tables.healthy(600)
    quality = sacm.inspect(values)
    assert not any(event.kind == "stuck" for event in quality.events)
    assert quality.share < 0.01
    assert not any("float32" in note for note in quality.subject.notes)


def test_what_was_found_adds_up() -> None:
    quality = sacm.inspect(tables.wide())
    assert sum(event.rows for event in quality.events) == (quality.flags > 0).sum()
    shares = quality.shares()
    total = sum(sum(own.values()) for own in shares.values()) / len(shares)
    assert total == pytest.approx(quality.share)
    np.testing.assert_array_equal(quality.weights, quality.reliability)
