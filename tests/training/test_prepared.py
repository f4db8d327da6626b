"""What strategies prepare is made once for the same data and options."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from sacm.registry import temporary_entries
from sacm.strategies.base import Prepared, Strategy
from sacm.strategies.registry import Combined, register
from sacm.training.prepared import prepare_once
from tests.training.cases import make_data

CALLS: list[float] = []


@pytest.fixture(autouse=True)
def count() -> Iterator[None]:
    CALLS.clear()
    with temporary_entries():

        @register("counted")
        @dataclass(frozen=True)
        class Counted(Strategy):
            """Count how often data are prepared."""

            level: float = 1.0

            def prepare(self, data: object, *, window: int) -> Prepared:
                CALLS.append(self.level)
                return Prepared(data, self, ("counted",))

        yield


def test_the_same_data_and_options_are_prepared_once() -> None:
    data = make_data("forecasting")
    first = prepare_once("counted(2)", data, window=24)
    again = prepare_once("counted(2)", make_data("forecasting"), window=24)
    assert CALLS == [2.0]
    assert again is first
    assert again.seconds == first.seconds > 0


def test_other_options_windows_or_data_are_prepared_anew() -> None:
    data = make_data("forecasting")
    prepare_once("counted(3)", data, window=24)
    prepare_once("counted(4)", data, window=24)
    prepare_once("counted(4)", data, window=12)
    prepare_once("counted(4)", make_data("anomaly"), window=12)
    assert CALLS == [3.0, 4.0, 4.0, 4.0]


def test_parts_of_combined_strategies_are_shared() -> None:
    data = make_data("forecasting")
    prepare_once("counted(5)", data, window=24)
    both = prepare_once("counted(5)+sacm", data, window=24)
    assert CALLS == [5.0]
    assert isinstance(both.prepared.strategy, Combined)
    assert both.prepared.notes == ("counted",)
