from __future__ import annotations

import numpy as np
import pytest

from sacm.metrics.season import calendar_season, season_length


@pytest.mark.parametrize(
    ("frequency", "season"),
    [("h", 24), ("15min", 96), ("D", 7), ("B", 5), ("W-SUN", 52), ("MS", 12), ("QE-DEC", 4)],
)
def test_a_time_step_has_its_season(frequency: str, season: int) -> None:
    assert calendar_season(frequency) == season
    assert season_length(np.zeros((500, 1)), frequency) == season


@pytest.mark.parametrize("frequency", [None, "7h", "3MS", "strange!"])
def test_other_steps_have_none_of_the_calendar(frequency: str | None) -> None:
    assert calendar_season(frequency) is None


@pytest.mark.parametrize("period", [5, 12, 37])
def test_a_period_is_found_under_noise_and_trend(period: int) -> None:
    time = np.arange(600)
    noise = np.random.default_rng(0).normal(size=(600, 2))
    wave = np.sin(2 * np.pi * time / period)[:, None] + 0.3 * noise + 0.02 * time[:, None]
    assert season_length(wave, None) == period


def test_noise_constants_and_short_rows_have_no_season() -> None:
    noise = np.random.default_rng(0).normal(size=(400, 1))
    assert season_length(noise, None) == 1
    assert season_length(np.ones((400, 2)), None) == 1
    assert season_length(np.ones((5, 2)), "h") == 1
