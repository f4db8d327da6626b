"""How long windows are for a user's own series, and how its rows are divided to hold them."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from dataclasses import replace
from typing import Any

import numpy as np

from sacm.data.datasets import ForecastingData, Segment, Splits, split_by_ratio
from sacm.data.scaling import fill_gaps
from sacm.metrics.forecasting import season_length

_USUAL_HORIZON, _USUAL_INPUT = 24, 96
_LONGEST = 336  # rows that a season may have to be forecast whole, and windows of candidates
_SEASONS = 5  # rows of a series in seasons, from which a season is forecast whole
_ROWS = 5000  # the last training rows, in which the season is looked for


def find_lengths(
    data: ForecastingData, horizon: int | None, *, candidates: bool
) -> tuple[int, int]:
    """Input length and horizon of a user's own series, by its season and the rows that there are.

    At least two seasons and 96 rows in, less where the training rows are few; a season ahead where
    no horizon is asked for. Of candidates, smoothing sees up to 336 rows; see `member_lengths`.
    """
    season = find_season(data)
    rows = usual_length(data.last_rows(len(data.values)).values())
    if horizon is None:
        whole = 1 < season <= _LONGEST and rows >= _SEASONS * season
        horizon = season if whole else min(_USUAL_HORIZON, max(1, rows // 10))
    splits = divide(rows, horizon)
    train = len(splits.train)
    if candidates:
        return min(max(2 * season + 2, _LONGEST), splits.test.start), horizon
    room = max((train - horizon) // 2, 2 * season)
    return max(1, min(max(2 * season + 2, _USUAL_INPUT), room, train - horizon)), horizon


def member_lengths(data: ForecastingData, input_len: int, horizon: int) -> tuple[int, int]:
    """Rows of training and of validation windows where candidates see up to `input_len` rows.

    Networks and regression learn from many short windows. Validation windows begin with the data.
    """
    train, season = usual_length(data.ranges("train")), find_season(data)
    before = max(1, min(input_len, train - horizon))
    wanted = max(2 * season, _USUAL_INPUT, min(7 * season, before) if season >= 24 else 0)
    room = max((train - horizon) // 3, min(2 * season, train - horizon - 8))
    return max(1, min(wanted, room, before)), max(1, min(input_len, train))


def usual_length(parts: Iterable[Sized]) -> int:
    """Rows of the shortest of some series, without those much shorter than the others."""
    lengths = [len(part) for part in parts]
    return min(length for length in lengths if 2 * length >= np.median(lengths))


def find_season(data: ForecastingData) -> int:
    """Steps of a season in the training rows; 1 where there is none."""
    longest = max(data.ranges("train") or data.ranges("test"), key=len)
    rows = data.values[max(longest.start, longest.stop - _ROWS) : longest.stop]
    return season_length(fill_gaps(rows), data.frequency)


def divide(rows: int, horizon: int) -> Splits:
    """The default split of a series, with room for a horizon in validation and test.

    Short series give up training rows: validation gets two horizons where training keeps four.

    Example:
        >>> [len(part) for part in divide(144, 12)], [len(part) for part in divide(40, 12)]
        ([90, 24, 30], [16, 12, 12])
    """
    usual = split_by_ratio(rows)
    test = max(rows - usual.val.stop, horizon)
    for least, kept in ((2 * horizon, 4 * horizon), (horizon, horizon)):
        val = max(len(usual.val), least)
        train = rows - val - test
        if train >= kept + 1:
            return Splits(range(train), range(train, rows - test), range(rows - test, rows))
    return usual


def make_room(data: ForecastingData, horizon: int) -> ForecastingData:
    """A user's own data with validation and test rows that hold the horizon.

    Data that are not split in the default way stay as they are.
    """
    from sacm.data.forecasting import split_major  # needs pandas, which predictions do not

    series = data.last_rows(len(data.values))
    usual = [split_by_ratio(len(rows)) for rows in series.values()]
    found = [
        [int(np.isin(rows, part).sum()) for part in data.splits] for rows in series.values()
    ]  # rows of each series in each split
    if not data.reach_back or found != [[*map(len, splits)] for splits in usual]:
        return data
    divided = [divide(len(rows), horizon) for rows in series.values()]
    if divided == usual:
        return data
    if len(series) == 1:
        return replace(data, splits=divided[0])
    ends = np.cumsum([0, *map(len, series.values())]).tolist()
    whole = [Segment(*parts) for parts in zip(series, ends[:-1], ends[1:], strict=True)]
    order, segments, borders = split_major(whole, divided)
    chosen = np.concatenate(list(series.values()))[order]
    arrays: dict[str, Any] = {
        name: getattr(data, name)[chosen]
        for name in ("values", "timestamps", "targets", "observed", "broken", "covariates")
        if getattr(data, name) is not None
    }
    return replace(data, splits=borders, segments=segments, **arrays)
