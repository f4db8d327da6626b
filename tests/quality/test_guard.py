"""Guard: fit, check, transform, stream and module agree; what was learnt is saved."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import sacm
from sacm.errors import ArgumentError, SACMError
from sacm.quality.config import FAIL, GuardConfig
from sacm.quality.guard import Guard
from tests.quality import tables

TRAIN, WINDOW = 1500, 48


def rows(count: int = 2000, seed: int = 0) -> np.ndarray:
    return tables.healthy(count, 3, seed)


def fresh(seed: int = 5) -> np.ndarray:
    """New rows with one fault of each kind that can be seen at once."""
    values = rows(300, seed)
    values[60, 0] = 12.0
    values[100:140, 1] = values[100, 1]
    values[200:206, 2] = np.nan
    return values


@pytest.fixture(scope="module")
def guard() -> Guard:
    return Guard(window=WINDOW).fit(rows()[:TRAIN])


def test_check_finds_what_is_broken_in_new_rows(guard: Guard) -> None:
    quality = guard.check(fresh())
    assert quality.grades[60, 0] == FAIL
    assert (quality.grades[112:140, 1] == FAIL).all()
    assert (quality.grades[200:206, 2] == FAIL).all()
    assert quality.share < 0.08
    assert np.isfinite(quality.values).all()
    assert abs(quality.values[60, 0]) < 2
    assert quality.summary().startswith("data: ")


def test_a_pipeline_of_scikit_learn_repairs_frames() -> None:
    pipeline = pytest.importorskip("sklearn.pipeline").make_pipeline(Guard(window=WINDOW))
    frame = pd.DataFrame(rows(), columns=["a", "b", "c"])
    repaired = pipeline.set_output(transform="pandas").fit_transform(frame)
    assert list(repaired.columns) == ["a", "b", "c"]


def test_inspecting_new_rows_changes_nothing_that_was_learnt() -> None:
    made = Guard(window=WINDOW).fit(rows()[:TRAIN])
    before = made.check(fresh()).flags
    assert made.inspect(fresh()).grades[60, 0] == FAIL
    np.testing.assert_array_equal(made.check(fresh()).flags, before)


def test_new_rows_may_have_more_columns_and_a_channel_without_values() -> None:
    names = ["a", "b", "c"]
    made = Guard(window=WINDOW).fit(pd.DataFrame(rows()[:TRAIN], columns=names))
    new = pd.DataFrame(fresh(), columns=names).assign(b=np.nan, other=7)[["other", *names[::-1]]]
    quality = made.check(new)
    assert (quality.grades[:, quality.recording.columns.index("b")] == FAIL).all()
    assert quality.repaired["b"].notna().all()
    assert (quality.repaired["other"] == 7).all()


def test_a_gap_code_that_training_rows_never_had_is_called_a_code(guard: Guard) -> None:
    values = rows(300, 5)
    values[100:110, 1] = -9999
    code = guard.check(values).kinds.index("code")
    assert (guard.check(values).flags[100:110, 1] == code).all()
    assert (guard.inspect(values).flags[100:110, 1] == code).all()


def test_check_and_transform_and_stream_agree(guard: Guard) -> None:
    values = fresh()
    quality = guard.check(values)
    np.testing.assert_array_equal(guard.transform(values), quality.repaired)
    stream = guard.stream()
    pushed = [stream.push(row) for row in values]
    np.testing.assert_array_equal([row.flags for row in pushed], quality.flags)
    np.testing.assert_array_equal([row.grades for row in pushed], quality.grades)
    np.testing.assert_allclose([row.values for row in pushed], quality.values, atol=1e-4)


@pytest.mark.parametrize("repair", ["all", "none"])
def test_they_agree_with_rules_and_every_repair(repair: str) -> None:
    rules = {
        "all": {"longest_gap": "3 rows"},
        "0": {"range": [-1.2, 1.2], "codes": [7]},
        "1": {"max_change": "0.5/row", "longest_rest": "5 rows"},
        "2": {"maintenance": [[20, 30]], "kinds": ["spike"], "needs": ["0"]},
    }
    guard = Guard(rules, window=WINDOW, repair=repair).fit(rows()[:TRAIN])
    values = fresh()
    values[10, 0] = 7.0
    quality = guard.check(values)
    stream = guard.stream()
    pushed = [stream.push(row) for row in values]
    np.testing.assert_array_equal([row.flags for row in pushed], quality.flags)
    np.testing.assert_array_equal([row.grades for row in pushed], quality.grades)
    np.testing.assert_allclose([row.values for row in pushed], quality.values, atol=1e-4)
    if repair == "none":
        np.testing.assert_array_equal([row.values for row in pushed], values)
    assert {"range", "max_change", "codes", "longest_rest", "maintenance", "needs"} <= {
        event.rule for event in quality.events
    }


def test_nothing_after_a_row_changes_its_answer(guard: Guard) -> None:
    values = fresh()
    whole, part = guard.check(values), guard.check(values[:150])
    np.testing.assert_array_equal(whole.flags[:150], part.flags)
    np.testing.assert_allclose(whole.values[:150], part.values, atol=1e-4)


def test_values_that_are_not_repaired_pass_bit_by_bit(guard: Guard) -> None:
    for dtype in (np.float32, np.float64):
        values = fresh().astype(dtype)
        quality = guard.check(values)
        given = np.asarray(quality.repaired)
        assert given.dtype == dtype
        assert (given[~quality.changed] == values[~quality.changed]).all()


def test_normal_rows_are_hardly_ever_repaired(guard: Guard) -> None:
    quality = guard.check(rows(3000, 8))
    assert (quality.grades == FAIL).mean() < 0.002
    assert (quality.grades > 0).mean() < 0.01


def test_the_module_repairs_windows_as_the_stream_does(guard: Guard) -> None:
    values = fresh()
    window = torch.from_numpy(values[60 - WINDOW + 1 : 61]).unsqueeze(0)
    repaired = guard.module()(window)
    assert float(repaired[0, -1, 0]) == pytest.approx(guard.check(values).values[60, 0], abs=1e-4)
    assert bool(guard.module().flags(window)[0, -1, 0])


def test_columns_come_by_name_in_any_order() -> None:
    frame = pd.DataFrame(rows(), columns=["a", "b", "c"])
    guard = Guard(window=WINDOW).fit(frame[:TRAIN])
    new = pd.DataFrame(fresh(), columns=["a", "b", "c"])
    turned = guard.transform(new[["c", "a", "b"]])
    assert list(turned.columns) == ["c", "a", "b"]
    pd.testing.assert_frame_equal(turned[["a", "b", "c"]], guard.transform(new))
    first = dict(zip("cab", new.iloc[0][["c", "a", "b"]], strict=True))
    assert guard.stream().push(first).values.tolist() == pytest.approx(new.iloc[0].tolist())
    with pytest.raises(
        ArgumentError, match=r"has 3 channels \(a, b, x\), the training rows had 3 channels"
    ):
        guard.check(new.rename(columns={"c": "x"}))
    with pytest.raises(ArgumentError, match=r"2 channels \(a, b\), the training rows had 3"):
        guard.check(new[["a", "b"]])
    with pytest.raises(ArgumentError, match="the row lacks 'b'; it has a"):
        guard.stream().push({"a": 1.0})
    with pytest.raises(ArgumentError, match="2 values for 3 channels"):
        guard.stream().push([1.0, 2.0])
    with pytest.raises(ArgumentError, match="must hold numbers"):
        guard.stream().push(["x", 1, 2])


def test_another_time_step_is_an_error() -> None:
    hourly = pd.DataFrame(rows(), columns=["a", "b", "c"])
    hourly.index = pd.date_range("2024", periods=len(hourly), freq="h")
    guard = Guard(window=WINDOW).fit(hourly[:TRAIN])
    assert guard.check(hourly[TRAIN:]).flags.shape == (500, 3)
    half = hourly[TRAIN:].copy()
    half.index = pd.date_range("2025", periods=500, freq="30min")
    with pytest.raises(ArgumentError, match="a row every 1800 s, the training rows had one every"):
        guard.check(half)
    stream = guard.stream()
    stream.push([0, 0, 0], time="2025-01-01 00:00")
    stream.push([0, 0, 0], time="2025-01-01 01:00")
    with pytest.raises(ArgumentError, match="comes 1800 s after the last row"):
        stream.push([0, 0, 0], time="2025-01-01 01:30")
    with pytest.raises(ArgumentError, match="does not follow"):
        stream.push([0, 0, 0], time="2024-01-01 01:30")
    with pytest.raises(ArgumentError, match="is no time"):
        stream.push([0, 0, 0], time="yesterday")
    with pytest.raises(ArgumentError, match="is no time"):
        stream.push([0, 0, 0], time=pd.NaT)


def test_a_stream_goes_on_from_its_state(guard: Guard) -> None:
    values = fresh()
    whole, first = guard.stream(), guard.stream()
    for row in values[:130]:
        whole.push(row)
        first.push(row)
    later = guard.stream()
    later.load_state_dict(json.loads(json.dumps(first.state_dict())))
    for row in values[130:]:
        expected, found = whole.push(row), later.push(row)
        np.testing.assert_array_equal(expected.flags, found.flags)
        np.testing.assert_array_equal(expected.values, found.values)
    other = {"rows": [[0.0]], "gap": [0], "count": 0, "time": None}
    for wrong in ({"rows": "x"}, other):
        with pytest.raises(ArgumentError, match="none that state_dict of a stream of this guard"):
            later.load_state_dict(wrong)


def test_a_guard_is_saved_with_everything(guard: Guard, tmp_path: Path) -> None:
    rules = {"0": {"range": [-5, 5]}, "all": {"maintenance": [[3, 4]], "longest_gap": "2 h"}}
    frame = pd.DataFrame(rows(), columns=["0", "1", "2"])
    frame.insert(0, "time", pd.date_range("2024", periods=len(frame), freq="h"))
    made = Guard(rules, 0.5, WINDOW, "all").fit(frame)
    made.save(tmp_path / "guard.st")
    loaded = Guard.load(tmp_path / "guard.st")
    assert (loaded.false_events, loaded.window, loaded.repair) == (0.5, WINDOW, "all")
    first, second = made.check(fresh()), loaded.check(fresh())
    np.testing.assert_array_equal(first.flags, second.flags)
    np.testing.assert_array_equal(first.values, second.values)
    np.testing.assert_array_equal(made.inspect(fresh()).flags, loaded.inspect(fresh()).flags)
    with pytest.raises(SACMError, match="is a folder"):
        made.save(tmp_path)
    (tmp_path / "bad.st").write_bytes(b"nothing")
    with pytest.raises(SACMError):
        Guard.load(tmp_path / "bad.st")


def test_a_guard_is_an_estimator_of_scikit_learn() -> None:
    clone = pytest.importorskip("sklearn.base").clone
    guard = Guard({"all": {"range": [-9, 9]}}, 2.0, WINDOW)
    copy = clone(guard)
    assert copy.get_params() == guard.get_params()
    assert copy.set_params(window=None).window is None
    with pytest.raises(ArgumentError, match="Guard has no 'sensitivity'"):
        guard.set_params(sensitivity=1)
    is_fitted = pytest.importorskip("sklearn.utils.validation").check_is_fitted
    with pytest.raises(pytest.importorskip("sklearn.exceptions").NotFittedError):
        is_fitted(copy)
    fitted = copy.fit(rows())
    is_fitted(fitted)
    assert fitted.n_features_in_ == 3
    with pytest.raises(ArgumentError, match="judges tables only"):
        fitted.module()
    with pytest.raises(ArgumentError, match="is not fitted"):
        Guard().check(rows())


@pytest.mark.lab
def test_the_training_rows_may_be_broken_in_a_third_of_their_values() -> None:
    from sacm_lab.robust.faults.fault import corrupt_series

    values = corrupt_series(rows(4000), "mix", 0.3, seed=3).values
    quality = Guard(window=WINDOW).fit(values).check(fresh())
    assert quality.grades[60, 0] == FAIL
    assert np.isfinite(quality.values).all()
    assert (quality.grades == FAIL).mean() < 0.1


def test_uncertainty_of_new_rows_grows_with_the_gap(guard: Guard) -> None:
    values = rows(200, 4)
    values[100:120, 0] = np.nan
    quality = guard.check(values)
    spread = quality.uncertainty[100:120, 0]
    assert (np.diff(spread) >= 0).all()
    assert spread[0] > 0
    clean = rows(200, 4)
    assert np.abs(quality.values - clean)[100:120, 0].mean() < 3 * spread.mean()


def test_thresholds_are_positive_and_reach_the_guard() -> None:
    with pytest.raises(ArgumentError, match="material must be a positive number"):
        GuardConfig(material=-1)
    lenient = sacm.Guard(window=None, config=GuardConfig(material=50.0))
    assert not (lenient.fit_inspect(fresh()).flags == 4).any()


def test_faults_that_look_independent_only_in_the_last_round_are_judged() -> None:
    random, steps = np.random.default_rng(3), np.arange(1200)
    rows = np.stack([np.sin(steps / 4), np.cos(steps / 7)], 1) + 0.1 * random.normal(size=(1200, 2))
    wild = random.random(rows.shape) < 0.2
    rows = np.where(wild, rows + random.normal(size=rows.shape), rows)
    guard = sacm.Guard(window=24).fit(rows)
    assert np.isfinite(guard.transform(rows)).all()
