from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sacm.data.datasets import AnomalyData, ForecastingData, Segment, TelemetrySegment
from sacm.data.splits import Splits
from sacm.errors import ArgumentError
from sacm.quality.clock import Clock, SeriesEnd
from sacm.quality.reading import read_subject
from sacm.quality.subject import check_columns
from tests.quality import tables


def several() -> ForecastingData:
    """Two series of 60 and 40 rows, ordered split by split."""
    segments = [("a", 0, 40), ("b", 40, 70), ("a", 70, 80), ("b", 80, 85), ("a", 85, 95)]
    return ForecastingData(
        "two",
        tables.healthy(100).astype(np.float32),
        ("load", "heat"),
        Splits(range(70), range(70, 85), range(85, 100)),
        segments=(*(Segment(*each) for each in segments), Segment("b", 95, 100)),
    )


def test_every_piece_knows_the_number_of_its_first_row() -> None:
    subject = read_subject(several())
    assert subject.labels == ("a", "b", "a", "b", "a", "b")
    assert subject.starts == (0, 0, 40, 30, 50, 35)
    assert [len(rows) for rows in subject.train] == [40, 30, 0, 0, 0, 0]
    values, pieces, starts = subject.training_rows()
    assert len(values) == 70
    assert pieces == [range(40), range(40, 70)]
    assert starts == [0, 0]


def test_parts_end_at_the_borders_of_splits() -> None:
    parts, starts = read_subject(tables.forecasting()).parts()
    assert parts == [range(280), range(280, 320), range(320, 400)]
    assert starts == [0, 280, 320]
    parts, starts = read_subject(tables.broken(), train=range(100, 200)).parts()
    assert parts == [range(100), range(100, 200), range(200, 400)]
    assert starts == [0, 100, 200]
    assert read_subject(tables.broken(), train=range(100, 200)).training_rows()[2] == [100]


def test_rows_that_all_train_are_judged_once() -> None:
    assert read_subject(tables.broken()).trains_on_all
    assert read_subject(tables.long()).trains_on_all
    assert not read_subject(tables.broken(), train=0.5).trains_on_all
    assert not read_subject(tables.forecasting()).trains_on_all


def test_filled_gaps_are_gaps_again() -> None:
    subject = read_subject(tables.forecasting())
    assert np.isnan(subject.values[tables.GAP, 0]).all()
    assert np.isfinite(np.delete(subject.values[:, 0], np.r_[tables.GAP])).all()


def test_machines_without_test_rows_are_left_out() -> None:
    machines = (
        TelemetrySegment("one", range(100), range(50)),
        TelemetrySegment("two", range(100, 150), range(50, 50)),
    )
    rows = tables.healthy(200).astype(np.float32)
    data = AnomalyData("pumps", rows[:150], rows[150:], np.zeros(50), ("a", "b"), machines)
    subject = read_subject(data)
    assert subject.labels == ("one", "two", "one")
    assert subject.starts == (0, 0, 100)
    assert [len(piece) for piece in subject.pieces] == [100, 50, 50]


def test_restoring_nothing_gives_the_data_back() -> None:
    for make in (tables.wide, tables.long, tables.broken):
        data = make()
        subject = read_subject(data)
        same = subject.restore(subject.values, np.zeros(subject.values.shape, bool))
        assert same is not data
        if isinstance(data, pd.DataFrame):
            pd.testing.assert_frame_equal(same, data)
        else:
            np.testing.assert_array_equal(same, data)


def test_values_keep_the_precision_in_which_they_came() -> None:
    assert read_subject(tables.broken()).values.dtype == np.float64
    assert read_subject(tables.broken().astype(np.float32)).values.dtype == np.float32
    values = read_subject(tables.wide()).values
    np.testing.assert_array_equal(values, tables.broken())


def test_channels_of_other_names_are_refused_in_a_short_sentence() -> None:
    names = [f"channel {place}" for place in range(30)]
    subject = read_subject(pd.DataFrame(tables.healthy(50, 30), columns=names))
    check_columns(subject, names)
    check_columns(subject, [str(place) for place in range(30)])  # an array has no names
    with pytest.raises(ArgumentError, match="and 22 more") as caught:
        check_columns(subject, names[::-1])
    assert len(str(caught.value)) < 400


def test_dates_number_rows_also_where_months_differ_in_length() -> None:
    months = pd.date_range("2010-01-01", periods=180, freq="MS")
    frame = pd.DataFrame({"date": months, "y": tables.healthy(180, 1)[:, 0]})
    clock = Clock.of(read_subject(frame[:120]))
    for first in (0, 60, 119, 120, 121, 170):
        assert clock.number_rows(read_subject(frame[first:])) == (first,)


def test_missing_training_rows_do_not_move_what_follows() -> None:
    frame = tables.wide().drop(index=range(100, 110))
    clock = Clock.of(read_subject(frame[:290]))
    assert clock.number_rows(read_subject(frame[290:])) == (290,)
    assert clock.number_rows(read_subject(frame[300:])) == (300,)


def test_rows_without_dates_follow_the_training_rows_of_their_series() -> None:
    clock = Clock({"a": SeriesEnd(400), "b": SeriesEnd(310)})
    frame = tables.long().assign(ds=lambda table: table.groupby("unique_id").cumcount())
    frame["unique_id"] = frame["unique_id"].replace("b", "new")
    numbers = clock.number_rows(read_subject(frame))
    assert sorted(numbers) == [0, 400]
    assert Clock.from_dict(clock.to_dict()).ends == clock.ends
    alone = Clock({"last year": SeriesEnd(77)})
    assert alone.number_rows(read_subject(tables.broken())) == (77,)
