"""Bad input gives one sentence or a stated repair, and no healthy value is ever changed."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import sacm
from sacm.errors import SACMError, SACMWarning
from tests.quality import tables

ROWS = 200
healthy = tables.healthy


def second(values: Any) -> np.ndarray:
    """Two channels, the second one as given."""
    table = healthy(ROWS)
    table[:, 1] = values
    return table


def frame(**columns: Any) -> pd.DataFrame:
    return tables.wide(healthy(ROWS)).assign(**columns)


def renamed(name: Any) -> pd.DataFrame:
    return frame().rename(columns={"load": name})


def at_times(change: Callable[[pd.Series], Any]) -> pd.DataFrame:
    table = frame()
    table["date"] = change(table["date"])
    return table


def with_index(index: Any) -> pd.DataFrame:
    return frame().drop(columns="date").set_index(index)


def shaken(times: pd.Series) -> pd.Series:
    offsets = np.random.default_rng(0).integers(0, 3000, len(times))
    return times + pd.to_timedelta(offsets, unit="s")


def with_infinity(table: np.ndarray) -> np.ndarray:
    table[[4, 5], 0] = [np.inf, -np.inf]
    return table


counting = np.arange(ROWS)
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "no rows": (lambda: np.empty((0, 2)), r"must be \[T\]"),
    "no channels": (lambda: np.empty((20, 0)), r"must be \[T\]"),
    "a number": (lambda: np.float64(3), r"must be \[T\]"),
    "nothing": (lambda: None, r"must be \[T\]"),
    "an empty frame": (pd.DataFrame, "no rows or no columns"),
    "a frame without rows": (lambda: frame()[:0], "no rows or no columns"),
    "a frame of an index": (lambda: pd.DataFrame(index=range(5)), "no rows or no columns"),
    "a frame of times": (lambda: frame()[["date"]], "no column of values"),
    "the same time twice": (
        lambda: at_times(lambda t: t.mask(counting == 5, t[4])),
        "rows 5 and 6",
    ),
    "beyond float32": (lambda: healthy(ROWS) * 1e300, "too large"),
    "an object array": (lambda: healthy(ROWS).astype(object), "holds object"),
    "three dimensions": (lambda: healthy(ROWS).reshape(50, 4, 2), r"got \[50, 4, 2\]"),
    "a tensor of three dimensions": (lambda: torch.zeros(3, 4, 5), r"got \[3, 4, 5\]"),
    "a sparse tensor": (lambda: torch.eye(30).to_sparse(), "dense"),
    "a tensor without values": (lambda: torch.zeros(30, 2, device="meta"), "dense"),
    "complex numbers": (lambda: healthy(ROWS).astype(complex), "complex128"),
    "words": (lambda: np.array([["a", "b"]] * 20), "not numbers"),
    "records": (lambda: np.zeros(5, dtype=[("a", float)]), "not numbers"),
    "dates": (lambda: np.arange(20).astype("datetime64[h]"), "not numbers"),
    "two columns of one name": (
        lambda: frame().set_axis(["date", "a", "a"], axis=1),
        "two columns are called 'a'",
    ),
    "no such file": (lambda: Path("nothing.csv"), "no file nothing.csv"),
    "no such file as text": (lambda: "nothing.parquet", "no file nothing.parquet"),
    "a dictionary": (lambda: {"a": [1, 2]}, "is a dict"),
    "lists of unequal length": (lambda: [[1, 2], [3]], "is a list"),
    "a function": (lambda: healthy, "is a function"),
    "a series without a name in a long table": (
        lambda: tables.long().assign(unique_id=None),
        "no unique_id",
    ),
}
READ: dict[str, Callable[[], Any]] = {
    "a channel without a value": lambda: second(np.nan),
    "no value at all": lambda: np.full((ROWS, 2), np.nan),
    "one row": lambda: healthy(1),
    "two rows": lambda: healthy(2),
    "fewer rows than a season": lambda: healthy(20),
    "a constant channel": lambda: second(5.0),
    "constant channels only": lambda: np.zeros((ROWS, 3)),
    "a channel of one code": lambda: second(-9999.0),
    "a channel of codes but for a few": lambda: second(np.where(counting % 7 < 6, -9999.0, 1.0)),
    "one spike on a constant": lambda: second(np.where(counting == 100, 9.0, 1.0)),
    "a step": lambda: second(np.where(counting < 100, 0.0, 5.0)),
    "zero and one by turns": lambda: second(counting % 2),
    "a counter": lambda: np.arange(300.0),
    "infinite values": lambda: with_infinity(healthy(ROWS)),
    "infinite values in a frame": lambda: pd.DataFrame(with_infinity(healthy(ROWS))),
    "an infinite channel": lambda: second(np.inf),
    "booleans": lambda: healthy(ROWS) > 0,
    "booleans in a frame": lambda: frame(on=counting % 50 < 20),
    "huge units": lambda: healthy(ROWS) * 1e30,
    "tiny units": lambda: healthy(ROWS) * 1e-30,
    "float16": lambda: healthy(ROWS).astype(np.float16),
    "long double": lambda: healthy(ROWS).astype(np.longdouble),
    "int8": lambda: (healthy(ROWS) * 50).astype(np.int8),
    "uint64": lambda: (np.abs(healthy(ROWS)) * 1e18).astype(np.uint64),
    "other byte order": lambda: healthy(ROWS).astype(">f8"),
    "rows backwards in memory": lambda: healthy(ROWS)[::-1],
    "Fortran order": lambda: np.asfortranarray(healthy(ROWS)),
    "a tensor with gradient": lambda: torch.from_numpy(healthy(ROWS)).requires_grad_(),
    "a tensor of integers": lambda: (torch.from_numpy(healthy(ROWS)) * 50).int(),
    "a masked array": lambda: np.ma.masked_greater(healthy(ROWS), 1),
    "a masked array of integers": lambda: np.ma.masked_greater((9 * healthy(ROWS)).astype(int), 8),
    "irregular times": lambda: at_times(shaken),
    "no time in a row": lambda: at_times(lambda t: t.mask(counting == 3)),
    "missing rows": lambda: frame().drop(index=range(50, 60)),
    "times in a zone": lambda: at_times(lambda t: t.dt.tz_localize("Asia/Tokyo")),
    "periods": lambda: with_index(pd.period_range("2024", periods=ROWS, freq="h")),
    "an index of two levels": lambda: with_index(
        pd.MultiIndex.from_product([["a", "b"], range(ROWS // 2)])
    ),
    "column names of two levels": lambda: with_index(counting).set_axis(
        pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")]), axis=1
    ),
    "names in other letters": lambda: renamed("Last ⚡ [kW] $x$ <b>"),
    "a very long name": lambda: renamed("x" * 500),
    "no name": lambda: renamed(None),
    "an empty name": lambda: renamed(""),
    "numbers as text": lambda: frame(load=[str(v) for v in healthy(ROWS)[:, 0]]),
    "integers with gaps": lambda: frame(n=pd.array([1, 2, 5, None] * 50, dtype="Int64")),
    "nullable floats": lambda: frame(load=pd.array(healthy(ROWS)[:, 0], dtype="Float64")),
    "series of one row each": lambda: pd.DataFrame(
        {"unique_id": range(20), "ds": pd.date_range("2024", periods=20), "y": np.arange(20.0)}
    ),
    "ids that are categories": lambda: tables.long().astype({"unique_id": "category"}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_refused_in_one_sentence(name: str) -> None:
    make, sentence = REFUSED[name]
    for call in (sacm.inspect, sacm.Guard(window=24).fit):
        with pytest.raises(SACMError, match=sentence) as caught:
            call(make())
        assert str(caught.value).endswith(".")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", READ)
def test_what_can_be_read_keeps_every_healthy_value(name: str) -> None:
    data = READ[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", SACMWarning)  # few rows to learn windows from
        quality = sacm.inspect(data)
        transformed = sacm.Guard(window=24).fit_transform(data)
    assert np.isfinite(quality.values).all()
    good = quality.flags == 0
    np.testing.assert_array_equal(quality.values[good], quality.recording.values[good])
    assert str(quality)
    for repaired in (quality.repaired, transformed):
        expected = np.ndarray if isinstance(data, np.ma.MaskedArray) else type(data)
        assert type(repaired) is expected
        if isinstance(data, pd.DataFrame):
            untouched = [c for c in data if repaired[c].dtype == data[c].dtype]
            assert len(repaired) == len(data)
            assert (repaired[untouched] != data[untouched]).to_numpy(bool).mean() < 0.2
        else:
            assert repaired.shape == data.shape


@pytest.mark.parametrize(
    ("train", "sentence"),
    [
        (0, "pass a share"),
        (0.0, "pass a share"),
        (2.0, "pass a share"),
        (-5, "pass a share"),
        (float("nan"), "pass a share"),
        ("x", "pass a share"),
        (True, "pass a share"),
        ([1, 2], "pass a share"),
        (range(0, 100, 2), "pass a share"),
        (slice("a", "b"), "pass a share"),
        (range(0), "holds no row"),
        (range(500, 600), "holds no row"),
    ],
)
def test_wrong_training_rows_are_refused(train: Any, sentence: str) -> None:
    with pytest.raises(SACMError, match=sentence):
        sacm.inspect(healthy(ROWS), train=train)


@pytest.mark.parametrize("budget", [0, -1.0, float("nan"), float("inf"), "high", None, True])
def test_a_wrong_budget_is_refused(budget: Any) -> None:
    for call in (
        lambda rows: sacm.inspect(rows, false_events=budget),
        sacm.Guard(false_events=budget).fit,
    ):
        with pytest.raises(SACMError, match="false_events must be a positive number"):
            call(healthy(ROWS))


@pytest.mark.parametrize("window", [0, -3, 2.5, "96", True])
def test_wrong_windows_are_refused(window: Any) -> None:
    with pytest.raises(SACMError, match="window must be a number of at least 5 rows"):
        sacm.Guard(window=window).fit(healthy(ROWS))


def test_what_was_counted_as_missing_or_uneven_is_said() -> None:
    infinite, uneven = (sacm.inspect(READ[name]()) for name in ("infinite values", "missing rows"))
    assert infinite.recording.notes == ("Column 0: infinite values are gaps (2).",)
    assert any("10 missing rows at 1 place" in sentence for sentence in uneven.sentences())


@pytest.mark.parametrize("name", ["two rows", "a constant channel", "a channel without a value"])
def test_channels_that_cannot_be_judged_are_named(name: str) -> None:
    assert any(
        "Not judged for spikes" in s and "'1' (" in s
        for s in sacm.inspect(READ[name]()).sentences()
    )
