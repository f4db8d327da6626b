"""Wrong arguments are refused in one sentence, before torch meets them."""

from __future__ import annotations

import pytest
import torch

from sacm import backbones
from sacm.errors import ArgumentError

from .cases import (
    CALENDAR,
    WITH_CALENDAR,
    Case,
    cases,
    every_case,
    every_forecaster,
    make,
    shared,
    windows,
)


@every_case
@pytest.mark.parametrize("shape", [(2, 95, 3), (2, 96, 4), (96, 3), (2, 3, 96)])
def test_wrong_window(case: Case, shape: tuple[int, ...]) -> None:
    with pytest.raises(ArgumentError, match=r"\[B, 96, 3\]"):
        shared(case)(torch.zeros(shape))


@every_forecaster
@pytest.mark.parametrize("horizon", [0, -1])
def test_wrong_horizon(case: Case, horizon: int) -> None:
    with pytest.raises(ArgumentError, match="horizon"):
        make(case, horizon=horizon)


@every_case
@pytest.mark.parametrize("wrong", [{"length": 0}, {"channels": 0}])
def test_wrong_sizes(case: Case, wrong: dict[str, int]) -> None:
    with pytest.raises(ArgumentError, match="at least 1"):
        make(case, prepare=False, **wrong)


@pytest.mark.parametrize("case", cases("classification"), ids=str)
def test_one_class(case: Case) -> None:
    with pytest.raises(ArgumentError, match="classes"):
        make(case, classes=1)


@every_case
def test_unknown_setting_is_named_with_the_known_ones(case: Case) -> None:
    with pytest.raises(ArgumentError, match=r"no setting 'widht'; its settings are .*dropout"):
        make(case, widht=3)


@every_case
def test_wrong_rate(case: Case) -> None:
    with pytest.raises(ArgumentError, match=r"dropout must be in \[0, 1\)"):
        make(case, dropout=1.0)


@every_forecaster
def test_stamps_without_tables(case: Case) -> None:
    with pytest.raises(ArgumentError, match="no calendar tables"):
        shared(case)(windows(2), torch.zeros(2, 96 + 24, 4))


@pytest.mark.parametrize(
    "case", [c for c in cases("forecasting") if c.name in WITH_CALENDAR], ids=str
)
def test_stamps_of_another_shape(case: Case) -> None:
    model = make(case, calendar_sizes=CALENDAR)
    with pytest.raises(ArgumentError, match=r"stamps must be \[2, 120, 4\]"):
        model(windows(2), torch.zeros(2, 96, 4))
    with pytest.raises(ArgumentError, match="pass stamps"):
        model(windows(2))


@pytest.mark.parametrize("case", [c for c in cases() if c.name not in WITH_CALENDAR], ids=str)
def test_calendar_where_there_is_none(case: Case) -> None:
    with pytest.raises(ArgumentError, match="no calendar features"):
        make(case, calendar_sizes=CALENDAR)


def test_unknown_names() -> None:
    with pytest.raises(ArgumentError, match="Did you mean 'PatchTST'"):
        backbones.build("PatchTTS", "forecasting", input_len=96, horizon=96, channels=7)
    with pytest.raises(ArgumentError, match="serves another task"):
        backbones.build("TranAD", "forecasting", input_len=96, horizon=96, channels=7)
    with pytest.raises(ArgumentError, match="unknown task"):
        backbones.names("regression")
    with pytest.raises(ArgumentError, match="unknown size"):
        backbones.build("PatchTST", "anomaly", input_len=96, channels=7, size="tiny")
    with pytest.raises(ArgumentError, match="needs horizon"):
        backbones.build("PatchTST", "forecasting", input_len=96, channels=7)
