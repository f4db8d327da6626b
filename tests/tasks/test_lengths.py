"""Windows that fit people's data: by season, and with room for the horizon."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sacm.data import forecasting_data
from sacm.data.datasets import ForecastingData
from sacm.tasks import get_task, let_compete, make_settings
from sacm.tasks.lengths import divide, make_room


def series(rows: int, step: str, season: int) -> ForecastingData:
    time = np.arange(rows)
    values = 50 + 10 * np.sin(2 * np.pi * time / season) + 0.1 * time
    times = pd.date_range("2001-01-01", periods=rows, freq=step)
    return forecasting_data(pd.DataFrame({"day": times, "sales": values}), name="sales")


@pytest.mark.parametrize("rows", [40, 79, 120, 300])
@pytest.mark.parametrize(("step", "season"), [("MS", 12), ("QS", 4), ("YS", 9), ("D", 7)])
@pytest.mark.parametrize("backbone", [None, "PatchTST"])
def test_short_files_can_be_forecast_twelve_steps_ahead(
    rows: int, step: str, season: int, backbone: str | None
) -> None:
    task, data = get_task("forecasting"), series(rows, step, season)
    asked = {"task": "forecasting", "data": "sales.csv", "horizon": 12, "backbone": backbone}
    settings = make_settings(**let_compete({k: v for k, v in asked.items() if v is not None}))
    done = task.resolve(settings, data)
    windows = task.windows(done, task.divide(done, data))
    assert done.horizon == 12
    assert min(map(len, windows)) > 0


def test_by_default_a_season_is_forecast_from_at_least_two() -> None:
    task = get_task("forecasting")
    for rows, step, season in ((144, "MS", 12), (1000, "h", 24), (200, "D", 7), (300, "QS", 4)):
        data = series(rows, step, season)
        done = task.resolve(make_settings(task="forecasting", data="sales.csv"), data)
        assert done.horizon == season
        assert done.input_len >= 2 * season
        assert f"{season} rows" in task.explain_lengths(done, data)


def test_validation_and_test_get_room_for_the_horizon() -> None:
    assert [len(part) for part in divide(144, 12)] == [90, 24, 30]
    assert [len(part) for part in divide(40, 12)] == [16, 12, 12]
    assert [len(part) for part in divide(10_000, 24)] == [7000, 1000, 2000]
    data = series(60, "MS", 12)
    assert [len(part) for part in make_room(data, 12).splits] == [36, 12, 12]
    asked = forecasting_data(data.values, split=(0.5, 0.25, 0.25))
    assert make_room(asked, 12) is asked


def test_the_series_of_a_panel_are_divided_each_by_itself() -> None:
    parts = []
    for name, rows in {"long": 400, "short": 50}.items():
        times = pd.date_range("2001-01-01", periods=rows, freq="MS")
        values = np.arange(rows) + (1000.0 if name == "short" else 0.0)
        parts.append(pd.DataFrame({"shop": name, "month": times, "sales": values}))
    data = forecasting_data(pd.concat(parts), id="shop")
    room = make_room(data, 12)
    lengths = {
        split: {segment.name: 0 for segment in room.segments} for split in ("train", "val", "test")
    }
    for split, own in lengths.items():
        for rows in room.ranges(split):
            name = "short" if room.values[rows.start, 0] >= 1000 else "long"
            own[name] += len(rows)
            assert (np.diff(room.values[rows.start : rows.stop, 0]) == 1).all()
    assert lengths["val"] == {"long": 40, "short": 12}
    assert lengths["test"] == {"long": 80, "short": 12}
    assert sorted(room.values[:, 0]) == sorted(data.values[:, 0])
