"""What a run remembers of its network and its data."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sacm.data import classification_data, forecasting_data
from sacm.tasks import get_task, make_settings
from sacm.tasks.base import NetworkShape
from tests.training.cases import TASKS, make_data, small_run, waves


def shape_of(data: Any, task: str = "forecasting", **settings: Any) -> NetworkShape:
    kind = get_task(task)
    asked = make_settings(task=task, data="memory", **settings)
    return kind.shape(kind.resolve(asked, data), data)


def test_names_time_step_and_classes() -> None:
    stamps = pd.date_range("2024-01-01", periods=50, freq="D")
    frame = pd.DataFrame(waves(50, 2), columns=["a", "b"]).assign(date=stamps)
    sizes: dict[str, Any] = {"input_len": 4, "horizon": 2}
    shape = shape_of(forecasting_data(frame), **sizes)
    expected = NetworkShape(2, 4, 2, columns=("a", "b"), frequency="D")
    assert shape == expected
    assert shape_of(forecasting_data(waves(50, 2)), **sizes) == NetworkShape(2, 4, 2)
    cases = classification_data(np.ones((4, 1, 9)), np.array([3, 7, 3, 7]))
    assert shape_of(cases, "classification") == NetworkShape(1, 9, classes=(3, 7))


def test_calendar_tables_are_those_of_the_training_data() -> None:
    hours = pd.date_range("2024-01-01", periods=60, freq="h")
    data = forecasting_data(pd.DataFrame(waves(60, 2)).assign(date=hours))
    sizes: dict[str, Any] = {"input_len": 4, "horizon": 2}
    assert shape_of(data, backbone="Informer", **sizes).calendar_sizes == (24, 7, 31, 366)
    assert shape_of(data, backbone="PatchTST", **sizes).calendar_sizes is None


@pytest.mark.parametrize("task", TASKS)
def test_a_run_keeps_it(task: str, tmp_path: Path) -> None:
    run = small_run(task, tmp_path, epochs=1)
    shape = run.task.shape(run.settings, make_data(task))
    assert run.shape == shape
    assert NetworkShape(**json.loads(json.dumps(asdict(shape)))) == shape
