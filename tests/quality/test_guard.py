from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

import sacm
from sacm.errors import ArgumentError, SACMError
from tests.quality import tables

NEW = 120


@pytest.fixture(scope="module")
def guard() -> sacm.Guard:
    return sacm.Guard(window=24).fit(tables.broken(600))


def new_rows(seed: int = 5) -> np.ndarray:
    """Rows that follow 600 training rows, a third of one day stuck and one spike."""
    values = tables.healthy(720, seed=seed)[600:]
    values[40:60, 1] = values[40, 1]
    values[80, 0] = -8.0
    return values


def test_new_rows_are_repaired_and_healthy_ones_stay(guard: sacm.Guard) -> None:
    rows = new_rows()
    repaired = guard.transform(rows)
    assert abs(repaired[80, 0] - tables.healthy(720, seed=5)[680, 0]) < 1
    changed = repaired != rows
    assert changed[50:60, 1].all()
    assert changed[:40].mean() < 0.02
    assert changed[90:].mean() < 0.02


@pytest.mark.parametrize("form", tables.FORMS)
def test_fit_transform_gives_back_what_came(form: str, tmp_path: Path) -> None:
    data = tables.FORMS[form](tmp_path)
    repaired = sacm.Guard(window=None).fit_transform(data)
    if isinstance(data, Path):
        expected: Any = np.ndarray if data.suffix in (".npy", ".npz") else pd.DataFrame
        assert isinstance(repaired, expected)
    elif isinstance(data, list):
        assert isinstance(repaired, np.ndarray)
    else:
        assert type(repaired) is type(data)
        assert repaired.shape == data.shape


@pytest.mark.parametrize("make", [tables.forecasting, tables.classification, tables.anomaly])
def test_data_sets_count_their_own_rows(make: Any) -> None:
    data = make()
    guard = sacm.Guard(window=None)
    first, again = guard.fit_transform(data), guard.transform(data)
    for name in ("values", "X_train", "X_test", "train", "test"):
        if hasattr(data, name):
            np.testing.assert_array_equal(getattr(first, name), getattr(again, name))


def test_dates_set_the_phase_of_the_season() -> None:
    frame = tables.wide(tables.healthy(480))
    frame.loc[400:410, "load"] = np.nan
    guard = sacm.Guard(window=None).fit(frame[:400])
    for first in (300, 389, 395):  # the cut changes the phase of the first row
        part = guard.transform(frame[first:])
        error = (part["load"] - tables.healthy(480)[first:, 0]).abs()
        assert error.loc[400:410].mean() < 0.5


def test_series_of_a_long_table_go_on_where_each_ended() -> None:
    frame = tables.long()
    frame = frame[(frame["unique_id"] == "a") | (frame["ds"] < tables.hours()[310])]
    frame["ds"] = frame.groupby("unique_id")["ds"].rank().astype(int)  # no dates, a counter
    frame = frame.sort_values(["unique_id", "ds"])
    guard = sacm.Guard(window=None).fit(frame)
    assert {name: end.rows for name, end in guard.clock_.ends.items()} == {"a": 400, "b": 310}


def test_a_saved_guard_repairs_the_same(guard: sacm.Guard, tmp_path: Path) -> None:
    path = tmp_path / "guard.safetensors"
    guard.save(path)
    loaded = sacm.Guard.load(path)
    rows = new_rows()
    np.testing.assert_array_equal(loaded.transform(rows), guard.transform(rows))
    assert loaded.get_params() == guard.get_params()
    assert loaded.columns_ == guard.columns_
    assert loaded.n_features_in_ == 2
    windows = torch.from_numpy(rows[:96].reshape(4, 24, 2)).float()
    assert torch.equal(loaded.module()(windows), guard.module()(windows))


def test_a_saved_guard_repairs_the_same_in_another_process(
    guard: sacm.Guard, tmp_path: Path
) -> None:
    guard.save(tmp_path / "guard.safetensors")
    np.save(tmp_path / "rows.npy", new_rows())
    code = (
        "import numpy as np, sacm\n"
        "guard = sacm.Guard.load('guard.safetensors')\n"
        "np.save('repaired.npy', guard.transform(np.load('rows.npy')))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
    repaired = np.load(tmp_path / "repaired.npy")
    np.testing.assert_array_equal(repaired, guard.transform(new_rows()))


def test_dates_survive_saving(tmp_path: Path) -> None:
    frame = tables.wide()
    guard = sacm.Guard(window=None).fit(frame[:300])
    guard.save(tmp_path / "guard.safetensors")
    loaded = sacm.Guard.load(tmp_path / "guard.safetensors")
    pd.testing.assert_frame_equal(loaded.transform(frame[300:]), guard.transform(frame[300:]))
    assert loaded.clock_.ends == guard.clock_.ends


def test_files_that_are_no_guard_are_refused(guard: sacm.Guard, tmp_path: Path) -> None:
    with pytest.raises(SACMError, match="missing"):
        sacm.Guard.load(tmp_path / "nothing.safetensors")
    (tmp_path / "text.safetensors").write_text("no guard")
    with pytest.raises(SACMError, match="damaged"):
        sacm.Guard.load(tmp_path / "text.safetensors")
    from safetensors.torch import save_file

    save_file({"a": torch.zeros(2)}, tmp_path / "other.safetensors")
    with pytest.raises(SACMError, match="no saved guard"):
        sacm.Guard.load(tmp_path / "other.safetensors")
    with pytest.raises(SACMError, match="is a folder"):
        guard.save(tmp_path)
    save_file({}, tmp_path / "new.safetensors", {"guard": '{"format": 99}'})
    with pytest.raises(SACMError, match="newer version"):
        sacm.Guard.load(tmp_path / "new.safetensors")
    save_file({}, tmp_path / "old.safetensors", {"guard": '{"format": 1, "sensitivity": 1.0}'})
    with pytest.raises(SACMError, match="saved by another version"):
        sacm.Guard.load(tmp_path / "old.safetensors")


def test_windows_are_repaired_by_the_module(guard: sacm.Guard) -> None:
    window = torch.from_numpy(new_rows()[72:96]).float()[None]
    repaired = guard.module()(window)
    assert repaired.shape == window.shape
    assert abs(float(repaired[0, 8, 0])) < 2
    assert guard.module().flags(window)[0, 8, 0]


def test_protect_takes_a_guard(guard: sacm.Guard) -> None:
    model = torch.nn.Identity()
    window = torch.from_numpy(new_rows()[72:96]).float()[None]
    sacm.protect(model, guard)
    assert torch.equal(model(window), guard.module()(window))
    assert torch.equal(sacm.unprotect(model)(window), window)


@pytest.mark.parametrize(
    ("window", "rows", "sentence"),
    [
        (None, tables.healthy(), "window=None"),
        (300, tables.healthy(), "windows of 300 steps cannot be learnt from series of 400 rows"),
        (24, np.stack([tables.healthy()[:, 0], np.full(400, np.nan)], 1), "no value at all"),
    ],
)
def test_a_guard_without_windows_says_why(window: int, rows: np.ndarray, sentence: str) -> None:
    guard = sacm.Guard(window=window).fit(rows)
    with pytest.raises(ArgumentError, match=sentence):
        guard.module()
    guard.transform(rows)  # tables are repaired all the same


@pytest.mark.parametrize("name", ["transform", "module", "save", "get_feature_names_out"])
def test_a_guard_that_is_not_fitted_says_so(name: str, tmp_path: Path) -> None:
    arguments: dict[str, tuple[Any, ...]] = {
        "transform": (tables.healthy(),),
        "save": (tmp_path / "guard.safetensors",),
    }
    with pytest.raises(ArgumentError, match="not fitted: call fit"):
        getattr(sacm.Guard(), name)(*arguments.get(name, ()))
    assert not (tmp_path / "guard.safetensors").exists()


def test_scikit_learn_can_clone_it_and_put_it_in_a_pipeline(guard: sacm.Guard) -> None:
    copy = clone(guard)
    assert copy.get_params() == {"sensitivity": 1.0, "window": 24}
    assert not hasattr(copy, "detector_")
    assert clone(guard.set_params(sensitivity=1.0)).sensitivity == 1.0
    assert repr(copy) == "Guard(sensitivity=1.0, window=24)"
    with pytest.raises(ArgumentError, match="has no 'depth'"):
        copy.set_params(depth=2)
    rows = tables.broken(600)
    pipeline = make_pipeline(sacm.Guard(window=None), Ridge())
    pipeline.set_params(guard__sensitivity=0.9)
    pipeline.fit(rows[:-1], tables.healthy(600)[1:, 0])
    assert np.isfinite(pipeline.predict(new_rows())).all()
    assert pipeline[:-1].get_feature_names_out().tolist() == ["0", "1"]


def test_rows_with_other_columns_are_refused() -> None:
    frame = tables.wide()
    guard = sacm.Guard(window=None).fit(frame)
    with pytest.raises(ArgumentError, match="heat, load; the training rows had load, heat"):
        guard.transform(frame[["date", "heat", "load"]])
    with pytest.raises(ArgumentError, match="1 channels, the training rows had 2"):
        guard.transform(frame[["date", "load"]])
    guard.transform(tables.broken())  # an array has no names to compare


edges = st.integers(1, NEW - 1)
wild = st.sampled_from([np.nan, 0.0, -8.0, 9.0, 1e4])


@settings(max_examples=40)
@given(
    cut=edges, length=st.integers(1, NEW), value=wild, seed=st.integers(0, 3), noisy=st.booleans()
)
def test_no_later_row_changes_a_repair(
    guard: sacm.Guard, cut: int, length: int, value: float, seed: int, noisy: bool
) -> None:
    rows = new_rows(seed)
    changed = rows.copy()
    later = slice(cut, cut + length)
    changed[later] = value
    if noisy:
        changed[later] = 5 * np.random.default_rng(seed).normal(size=changed[later].shape)
    before, after = guard.transform(rows), guard.transform(changed)
    np.testing.assert_array_equal(before[:cut], after[:cut])


@settings(max_examples=25)
@given(cut=edges, seed=st.integers(0, 3))
def test_rows_that_have_not_come_yet_do_not_matter(guard: sacm.Guard, cut: int, seed: int) -> None:
    rows = new_rows(seed)
    np.testing.assert_array_equal(guard.transform(rows[:cut]), guard.transform(rows)[:cut])


@settings(max_examples=15)
@given(first=st.integers(280, 399), length=st.integers(1, 120), value=wild)
def test_validation_and_test_rows_change_nothing_that_was_learnt(
    first: int, length: int, value: float
) -> None:
    values = tables.broken()
    other = values.copy()
    other[first : first + length] = value
    one, two = tables.forecasting(values), tables.forecasting(other)
    border = one.splits.train.stop
    assert border == 280
    guards = [sacm.Guard(window=None).fit(data) for data in (one, two)]
    states = [(g.detector_.to_dict(), g.repairer_.to_dict(), g.clock_.to_dict()) for g in guards]
    assert repr(states[0]) == repr(states[1])
    repaired = [g.transform(data).values for g, data in zip(guards, (one, two), strict=True)]
    np.testing.assert_array_equal(repaired[0][:border], repaired[1][:border])


@settings(max_examples=15)
@given(first=st.integers(280, 399), length=st.integers(1, 120), value=wild)
def test_an_inspection_does_not_look_beyond_a_split(first: int, length: int, value: float) -> None:
    values = tables.broken()
    values[270:280, 0] = values[270, 0]  # stuck up to the border of the training rows
    other = values.copy()
    other[first : first + length] = value
    one, two = (sacm.inspect(tables.forecasting(each)) for each in (values, other))
    border = 280 if first < 320 else 320
    np.testing.assert_array_equal(one.flags[:border], two.flags[:border])
    np.testing.assert_array_equal(one.values[:border], two.values[:border])
    np.testing.assert_array_equal(one.uncertainty[:border], two.uncertainty[:border])


def test_the_window_guard_learns_from_training_rows_alone() -> None:
    values = tables.healthy(900)
    other = values.copy()
    other[650:] = 50.0
    data = [tables.forecasting(each) for each in (values, other)]
    states = [sacm.Guard(window=24).fit(each).module().state_dict() for each in data]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
