"""`sacm.inspect`: every form of data, every kind of fault, grades, events, words and pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import sacm
from sacm.data import classification_data
from sacm.errors import ArgumentError
from sacm.quality.config import KINDS
from tests.quality import tables

ROWS = 3000


def waves(rows: int = ROWS, channels: int = 3, seed: int = 0) -> np.ndarray:
    """Daily waves with noise `[rows, channels]`."""
    return tables.healthy(rows, channels, seed)


def kinds_in(quality: Any, rows: slice, channel: int, grade: int | None = None) -> np.ndarray:
    flags, grades = quality.flags[rows, channel], quality.grades[rows, channel]
    return flags if grade is None else np.where(grades == grade, flags, 0)


@pytest.mark.parametrize("form", tables.FORMS)
def test_every_form_of_data_is_judged_alike_and_given_back(form: str, tmp_path: Path) -> None:
    data = tables.FORMS[form](tmp_path)
    quality = sacm.inspect(data)
    assert (quality.grades[tables.truth()] == 2).mean() > 0.9
    assert (quality.flags[~tables.truth()] > 0).mean() < 0.02
    repaired = quality.repaired
    if isinstance(data, Path):
        assert len(repaired) == tables.ROWS
    elif form == "polars":
        assert isinstance(repaired, pd.DataFrame)
    elif form in ("lists", "masked array"):
        assert type(repaired) is np.ndarray
    else:
        assert type(repaired) is type(data)
    if isinstance(data, pd.DataFrame):
        assert list(repaired.columns) == list(data.columns)
        assert repaired.index.equals(data.index)


def test_a_series_of_pandas_comes_back_as_a_frame() -> None:
    series = tables.wide().set_index("date")["load"]
    repaired = sacm.inspect(series).repaired
    assert isinstance(repaired, pd.DataFrame)
    assert repaired.shape == (tables.ROWS, 1)
    assert repaired.notna().all().all()


def test_cases_are_refused_with_what_judges_them() -> None:
    data = classification_data(np.zeros((9, 1, 20)), np.arange(9) % 2, name="moves")
    with pytest.raises(ArgumentError, match=r"moves holds cases.*find_wrong_labels"):
        sacm.inspect(data)


@pytest.mark.parametrize("make", [tables.forecasting, tables.anomaly])
def test_data_sets_are_given_back_with_test_anomalies_untouched(make: Any) -> None:
    data = make()
    quality = sacm.inspect(data)
    assert quality.flags.any()
    assert type(quality.repaired) is type(data)
    if make is tables.anomaly:
        np.testing.assert_array_equal(quality.repaired.test, data.test)


def test_several_series_are_judged_apart() -> None:
    quality = sacm.inspect(tables.long())
    assert quality.recording.labels == ("a", "b")
    assert {(e.series, e.kind) for e in quality.events} == {
        ("a", "missing"),
        ("a", "spike"),
        ("b", "stuck"),
    }


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(3))
def test_values_that_are_not_repaired_never_change(seed: int, dtype: Any) -> None:
    values = waves(1000, 2, seed).astype(dtype)
    generator = np.random.default_rng(seed)
    for _ in range(5):
        row, channel = generator.integers(0, 950), generator.integers(0, 2)
        values[row : row + generator.integers(1, 40), channel] = generator.normal() * 5
    for repair in ("fail", "all", "none"):
        quality = sacm.inspect(values, repair=repair)
        given = np.asarray(quality.repaired)
        assert given.dtype == dtype
        kept = ~quality.changed
        assert (given[kept] == values[kept]).all()
        expected = {"fail": quality.grades == 2, "all": quality.flags > 0}.get(repair)
        assert (quality.changed == (False if expected is None else expected)).all()


@pytest.mark.parametrize("seed", range(4))
def test_normal_noise_has_no_fail_event(seed: int) -> None:
    generator = np.random.default_rng(seed)
    wave = np.sin(np.arange(20_000) / 4)[:, None]
    for values in (
        wave + generator.normal(0, 0.1, (20_000, 3)),
        generator.normal(size=(20_000, 3)),
    ):
        quality = sacm.inspect(values)
        fail = [event for event in quality.events if event.grade == 2]
        assert len(fail) <= 6 * 1e-4 * 20_000  # the budget: 1 in 10,000 values
        assert not fail


def test_more_false_events_are_allowed_by_a_larger_budget() -> None:
    values = np.random.default_rng(0).laplace(size=(20_000, 2))
    counts = []
    for budget in (0.1, 1, 30):
        events = sacm.inspect(values, false_events=budget).events
        counts.append(sum(event.grade == 2 for event in events))
    assert counts[0] <= counts[1] < counts[2]
    assert counts[1] <= 8  # the budget is 4


@pytest.mark.parametrize(
    ("kind", "rows"),
    [("missing", 20), ("code", 4), ("stuck", 40), ("spike", 1), ("burst", 40), ("shift", 60)],
)
def test_injected_faults_are_found(kind: str, rows: int) -> None:
    found = []
    for seed in range(5):
        values = waves(seed=seed)
        generator = np.random.default_rng(seed)
        starts = np.arange(200, 2800, 500)
        for start in starts:
            part = slice(start, start + rows)
            values[part, 1] = {
                "missing": np.nan,
                "code": -999.0,
                "stuck": values[start, 1],
                "spike": values[start, 1] + 4,
                "burst": values[part, 1] + generator.normal(0, 1.5, rows),
                "shift": values[part, 1] + 9,
            }[kind]
        quality = sacm.inspect(values)
        for start in starts:
            flagged = kinds_in(quality, slice(start, start + rows), 1)
            found.append(np.isin(flagged, [KINDS.index(kind)]).mean() >= 0.5)
        if kind == "shift":
            assert not (quality.grades[quality.flags == KINDS.index("shift")] == 2).any()
    assert np.mean(found) >= (0.6 if kind == "shift" else 0.9)


def test_a_repair_is_near_to_the_truth() -> None:
    clean = waves()
    values = clean.copy()
    values[1000:1048, 0] = np.nan
    values[2000:2040, 1] = values[2000, 1]
    quality = sacm.inspect(values)
    error = np.abs(quality.values - clean)[quality.changed]
    assert error.mean() < 0.2


def test_ninety_percent_intervals_hold() -> None:
    from sacm.quality.repair import INTERVAL, hide_stretches

    clean = waves(6000, 4, 3)
    hidden = hide_stretches(clean.shape, (1, 3, 10, 30), seed=9)
    quality = sacm.inspect(np.where(hidden, np.nan, clean))
    missing = quality.changed & hidden
    inside = np.abs(quality.values - clean) <= INTERVAL * quality.uncertainty
    assert 0.85 <= inside[missing].mean() <= 0.95
    assert (quality.uncertainty[~quality.changed] == 0).all()


def test_what_related_channels_show_together_is_never_a_fail() -> None:
    generator = np.random.default_rng(0)
    common = generator.normal(0, 0.1, 5000)
    for row in generator.integers(100, 4900, 30):
        common[row] += 3.0  # storms that every channel sees
    values = common[:, None] + generator.normal(0, 0.05, (5000, 4))
    quality = sacm.inspect(values)
    assert not (quality.grades == 2).any()


def test_training_rows_alone_decide_what_is_normal() -> None:
    values = waves()
    later = values.copy()
    later[2000:] *= 20.0
    first, second = sacm.inspect(values, train=0.5), sacm.inspect(later, train=0.5)
    np.testing.assert_array_equal(first.flags[:1500], second.flags[:1500])
    assert (second.grades[2000:] > 0).mean() > 0.5


def test_reliability_follows_the_grade() -> None:
    values = waves()
    values[1000:1100, 0] = np.nan
    for repair in ("fail", "none"):
        quality = sacm.inspect(values, repair=repair)
        assert (quality.reliability == np.choose(quality.grades, (1.0, 0.5, 0.0))).all()
        assert (quality.reliability[1000:1100, 0] == 0).all()


def test_events_name_channel_kind_grade_and_times() -> None:
    quality = sacm.inspect(tables.wide())
    spike = next(event for event in quality.events if event.kind == "spike")
    assert (spike.channel, spike.grade, spike.first, spike.last) == ("load", 2, 250, 250)
    assert spike.first_time == np.datetime64("2024-01-11T10:00")
    assert spike.severity > 5
    assert spike.rule == ""
    frame = quality.to_frame()
    assert list(frame["channel"]) == [event.channel for event in quality.events]
    assert set(frame["grade"]) <= {"suspect", "fail"}
    assert (frame["keep"] == "").all()


def test_the_time_axis_has_events_of_its_own() -> None:
    frame = tables.wide(tables.healthy())
    frame.loc[100, "date"] += pd.Timedelta(minutes=20)
    quality = sacm.inspect(frame.drop(index=range(200, 210)))
    events = {event.kind: event for event in quality.events if event.channel == "time"}
    assert set(events) == {"missing rows", "jitter"}
    assert events["missing rows"].severity == 10
    assert events["missing rows"].first_time == np.datetime64("2024-01-09T07:00")
    assert "10 missing rows" in quality.summary()
    months = pd.DataFrame(
        {"date": pd.date_range("2000-01-31", periods=120, freq="ME"), "y": np.arange(120.0) ** 1.1}
    )
    assert not [e for e in sacm.inspect(months).events if e.channel == "time"]


def test_weekends_are_no_gaps_of_daily_rows() -> None:
    days = pd.bdate_range("2024-01-01", periods=300).delete([100, 101])
    frame = pd.DataFrame({"date": days, "x": np.random.default_rng(0).normal(size=298)})
    gaps = [event for event in sacm.inspect(frame).events if event.channel == "time"]
    assert [(event.kind, event.severity) for event in gaps] == [("missing rows", 2)]


def test_severity_tells_also_how_far_values_lie_that_were_not_repaired() -> None:
    rows = np.random.default_rng(0).normal(size=600)
    rows[300], rows[400] = 9.0, 20.0
    (near, far) = sacm.inspect(rows, repair="none").events
    assert near.severity == pytest.approx(9 - (rows[299] + rows[301]) / 2, rel=0.1)
    assert far.severity > near.severity + 5


def test_the_summary_speaks_of_broken_and_unusual_values(capsys: Any) -> None:
    quality = sacm.inspect(tables.wide())
    text = quality.summary()
    assert capsys.readouterr().out == ""
    assert text == str(quality)
    assert "of the values in 400 rows of 2 channels are broken" in text
    assert "heat" in text
    assert "stuck" in text
    normal = sacm.inspect(tables.healthy(2000))
    assert "nothing broken was found" in normal.summary()
    assert normal.share == 0
    assert normal.overview()["share"] == 0


def test_a_figure_shows_every_flagged_channel() -> None:
    import matplotlib.pyplot as plt

    figure = sacm.inspect(tables.wide()).plot()
    assert len(figure.axes) == 2
    plt.close(figure)


def test_tensors_keep_device_and_dtype() -> None:
    data = torch.from_numpy(tables.broken()).float()
    repaired = sacm.inspect(data).repaired
    assert repaired.dtype == torch.float32
    assert torch.isfinite(repaired).all()


def test_a_small_change_at_a_high_level_is_not_stuck() -> None:
    values = 1e9 + waves() * 1e-3
    assert not sacm.inspect(values).flags.any()
