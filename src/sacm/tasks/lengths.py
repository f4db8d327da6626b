"""How long windows are for a user's own series, and how its rows are divided to hold them."""

from __future__ import annotations

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
    no horizon is asked for. Where candidates compete, smoothing needs long windows; networks see
    less.
    """
    season = find_season(data)
    lengths = [len(rows) for rows in data.last_rows(len(data.values)).values()]
    # Series much shorter than the others do not shorten all windows.
    rows = min(length for length in lengths if 2 * length >= np.median(lengths))
    if horizon is None:
        whole = 1 < season <= _LONGEST and rows >= _SEASONS * season
        horizon = season if whole else min(_USUAL_HORIZON, max(1, rows // 10))
    train = len(divide(rows, horizon).train)
    wanted = max(2 * season + 2, _LONGEST if candidates else _USUAL_INPUT)
    room = train - horizon if candidates else max((train - horizon) // 2, 2 * season)
    return max(1, min(wanted, room, train - horizon)), horizon


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
