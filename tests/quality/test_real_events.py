"""What is unusual but real is never repaired by default."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch

import sacm

ROWS = 1500
USERS = Path(os.environ.get("SACM_DATA", "none")) / "users"


def weeks(channels: int, seed: int) -> tuple[np.ndarray, np.random.Generator]:
    generator = np.random.default_rng(seed)
    phase = 2 * np.pi * (np.arange(ROWS)[:, None] + np.arange(channels)) / 7
    return np.sin(phase) + 0.1 * generator.standard_normal((ROWS, channels)), generator


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("event", ["promotions", "noise that rises", "a level that rises"])
def test_forecasts_of_files_with_real_events_are_not_refused(channels: int, event: str) -> None:
    values, generator = weeks(channels, seed=0)
    if event == "promotions":
        values += (generator.random(values.shape) < 0.06) * generator.uniform(2, 6, values.shape)
    elif event == "noise that rises":
        noise = generator.standard_normal(values.shape)
        values += noise * np.linspace(0, 0.5, ROWS)[:, None]
    else:
        values += np.linspace(0, 3, ROWS)[:, None]
    guard = sacm.Guard(window=48).fit(values[:900])
    later = np.stack([values[first : first + 48] for first in range(900, ROWS - 48, 7)])
    repaired = guard.module().flags(torch.from_numpy(later))
    assert float(repaired.float().mean()) < 0.02


def test_windows_of_a_later_season_are_normal() -> None:
    """Cuts come from windows that the model has not seen: few rows do not make them too low."""
    generator = np.random.default_rng(0)
    hours = np.arange(3000)[:, None]
    yearly = np.sin(2 * np.pi * hours / 3000 + np.arange(7))
    daily = (1 + 0.5 * yearly) * np.sin(2 * np.pi * hours / 24 + np.arange(7) / 2)
    values = 2 * yearly + daily + 0.2 * generator.standard_normal((3000, 7)) * (1.5 + yearly)
    guard = sacm.Guard(window=96).fit(values[:1800])
    later = np.stack([values[first : first + 96] for first in range(1800, 2900, 24)])
    assert float(guard.module().flags(torch.from_numpy(later)).float().mean()) < 0.02


def test_common_spikes_to_one_side_are_no_fail_and_to_both_sides_fail() -> None:
    values, generator = weeks(1, seed=1)
    hit = generator.random(ROWS) < 0.05
    size = generator.uniform(3, 6, ROWS)
    sides = np.where(generator.random(ROWS) < 0.5, 1, -1)
    up, both = values[:, 0] + hit * size, values[:, 0] + hit * size * sides
    assert (sacm.inspect(up).grades[hit] == 2).mean() < 0.1
    assert (sacm.inspect(both).grades[hit] == 2).mean() > 0.9


def test_a_value_that_is_also_visited_briefly_is_no_gap_code() -> None:
    """A pump that is off for hours is sometimes off for a moment."""
    values, generator = weeks(1, seed=2)
    column, row = 3 * values[:, 0], 0
    while row < ROWS - 60:
        row += int(generator.integers(10, 40))
        length = int(generator.choice([2, 3, 30]))
        column[row : row + length] = 0.0
        row += length
    found = sacm.inspect(column)
    assert not (found.flags == found.kinds.index("code")).any()


@pytest.mark.skipif(not USERS.is_dir(), reason="the users' files are not here")
@pytest.mark.parametrize(
    ("file", "column", "first", "last"),
    [
        ("MTA_Daily_Ridership.csv", "Subways: Total Estimated Ridership", "2021", "2025"),
        ("us_gasoline.csv", None, "2020", "2021"),
        ("sp500-2000.csv", "volume", "2008-09", "2008-12"),
    ],
)
def test_holidays_epidemics_and_crises_stay_as_measured(
    file: str, column: str | None, first: str, last: str
) -> None:
    found = sacm.inspect(USERS / file)
    times = found.recording.times
    assert times is not None
    rows = (times >= np.datetime64(first)) & (times < np.datetime64(last))
    assert rows.any()
    columns = [column in (None, name) for name in found.recording.columns]
    assert any(columns)
    measured = np.isfinite(found.recording.values[np.ix_(rows, columns)])
    assert not (found.changed[np.ix_(rows, columns)] & measured).any()
