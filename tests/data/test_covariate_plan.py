from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest

from sacm.data.covariates import (
    FEATURES,
    CovariatePlan,
    calendar_features,
    find_holidays,
    holiday_features,
)
from sacm.errors import ArgumentError, DataError

HOURS = pd.date_range("2024-02-27 00:00", periods=24 * 9, freq="h")


def test_features_are_those_of_pandas() -> None:
    stamps = HOURS.to_numpy()
    angle = 2 * np.pi * HOURS.hour / 24
    hour = calendar_features(stamps, ["hour"])
    np.testing.assert_allclose(hour, np.stack([np.sin(angle), np.cos(angle)], 1), atol=1e-6)
    weekday = calendar_features(stamps, ["weekday"])
    np.testing.assert_array_equal(weekday.argmax(1), HOURS.dayofweek)
    np.testing.assert_array_equal(weekday.sum(1), 1)
    weekend = calendar_features(stamps, ["weekend"])
    np.testing.assert_array_equal(weekend[:, 0], HOURS.dayofweek >= 5)


def test_all_stands_for_every_feature() -> None:
    stamps = HOURS.to_numpy()
    plan = CovariatePlan.of({"calendar": "all"})
    assert plan.calendar == tuple(FEATURES)
    np.testing.assert_array_equal(
        plan.features(None, stamps), calendar_features(stamps, list(FEATURES))
    )


def test_unknown_features_and_columns_named_twice_are_refused() -> None:
    with pytest.raises(ArgumentError, match="'minute' is not a feature: choose among hour"):
        CovariatePlan.of({"calendar": ["minute"]})
    with pytest.raises(ArgumentError, match="'a' is named twice"):
        CovariatePlan.of({"past": ["a"], "future": ["a"]})


def test_the_calendar_needs_timestamps() -> None:
    with pytest.raises(DataError, match="need timestamps"):
        CovariatePlan(calendar=("hour",)).features(None, None)


def test_holidays_mark_the_day_and_its_neighbours() -> None:
    pytest.importorskip("holidays")
    days = pd.date_range("2014-07-02", periods=5).to_numpy()
    features = holiday_features(days, "US-NY")
    assert features.tolist() == [[0, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 0]]
    turn = holiday_features(np.array(["2014-12-31"], dtype="datetime64[s]"), "us")
    assert turn[0, 1] == 1  # New Year's Day is of the next year
    with pytest.raises(ArgumentError, match="'Atlantis' is not known: name a country"):
        holiday_features(days, "Atlantis")


def test_without_the_library_a_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "holidays", None)
    find_holidays.cache_clear()
    with pytest.raises(ArgumentError, match=r"pip install 'sacm\[holidays\]'"):
        find_holidays("DE", 2020, 2021)
