"""What a run remembers of its data."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sacm.data import classification_data, forecasting_data
from sacm.errors import DataError
from sacm.training.data_record import DataRecord, check_columns
from tests.training.cases import TASKS, make_data, small_run, waves


def test_names_time_step_and_classes() -> None:
    stamps = pd.date_range("2024-01-01", periods=50, freq="D")
    frame = pd.DataFrame(waves(50, 2), columns=["a", "b"]).assign(date=stamps)
    assert DataRecord.of(forecasting_data(frame)) == DataRecord(("a", "b"), True, "D")
    assert DataRecord.of(forecasting_data(waves(50, 2))) == DataRecord(None)
    cases = classification_data(np.ones((4, 1, 9)), np.array([3, 7, 3, 7]))
    assert DataRecord.of(cases) == DataRecord(None, classes=(3, 7))


@pytest.mark.parametrize("task", TASKS)
def test_a_run_keeps_it(task: str, tmp_path: Path) -> None:
    run = small_run(task, tmp_path, epochs=1)
    record = DataRecord.of(make_data(task))
    assert run.data_record == record
    assert DataRecord.from_dict(json.loads(json.dumps(record.to_dict()))) == record


def test_other_columns_or_another_order_are_refused() -> None:
    check_columns("new.csv", ["a", "b"], ("a", "b"))
    with pytest.raises(DataError, match="has the columns b, a but a, b were trained on"):
        check_columns("new.csv", ("b", "a"), ("a", "b"))
