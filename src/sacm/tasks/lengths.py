"""How long windows are for a user's own series, and how its rows are divided to hold them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from sacm.data.datasets import ForecastingData, Segment, Splits, split_by_ratio
from sacm.data.scaling import fill_gaps
from sacm.metrics.forecasting import season_length

_USUAL_HORIZON, _USUAL_INPUT = 24, 96
_LONGEST = 336  # rows that a season may have to be forecast whole, and windows of candidates
_SEASONS = 5  # rows of a series in seasons, from which a season is forecast whole
_MEMORY = 12  # seasons that candidates see where there are as many
_ROWS = 5000  # the last training rows, in which the season is looked for


class Lengths(NamedTuple):
    """Input length and horizon, and the season that they come from."""

    input_len: int
    horizon: int
    season: int


def find_lengths(data: ForecastingData, horizon: int | None, *, candidates: bool) -> Lengths:
    """Choose the lengths of windows by the season of the data and the rows that there are.

    Args:
        data: A user's own series.
        horizon: Steps to forecast; None for a season.
        candidates: Whether candidates compete, which may see less than a window.

    Returns:
        At least two seasons and 96 rows in, less where the training rows are few; a season ahead.
    """
    season = find_season(data)
    rows = int(np.median([len(own) for own in data.last_rows(len(data.values)).values()]))
    if horizon is None:
        whole = 1 < season <= _LONGEST and rows >= _SEASONS * season
        horizon = season if whole else min(_USUAL_HORIZON, max(1, rows // 10))
    if len(data.last_rows(1)) > 1:  # windows of a panel do not reach back into other splits
        room = max(rows // 4 - horizon, min(2 * season + 2, rows // 3 - horizon))
        return Lengths(max(1, min(max(2 * season + 2, _USUAL_INPUT), room)), horizon, season)
    train = len(divide(rows, horizon).train)
    seasons = min(_MEMORY * season, _LONGEST) if candidates else 0
    wanted = max(2 * season + 2, _USUAL_INPUT, seasons)
    room = train - horizon if candidates else max((train - horizon) // 2, 2 * season)
    return Lengths(max(1, min(wanted, room, train - horizon)), horizon, season)


def find_season(data: ForecastingData) -> int:
    """Steps of a season in the training rows; 1 where there is none."""
    longest = max(data.ranges("train") or data.ranges("test"), key=len)
    rows = data.values[max(longest.start, longest.stop - _ROWS) : longest.stop]
    return season_length(fill_gaps(rows), data.frequency)


def divide(rows: int, horizon: int, context: int = 0) -> Splits:
    """The default split of a series, with room for a horizon in validation and test.

    Short series give up training rows: validation gets two horizons where training keeps five.

    Args:
        rows: Rows of the series.
        horizon: Steps to forecast.
        context: Rows before them that must lie in the same split.

    Example:
        >>> [len(part) for part in divide(144, 12)], [len(part) for part in divide(40, 12)]
        ([90, 24, 30], [16, 12, 12])
    """
    usual = split_by_ratio(rows)
    test = max(rows - usual.val.stop, context + horizon)
    for least, kept in ((2 * horizon, 5 * horizon), (horizon, horizon)):
        val = max(len(usual.val), context + least)
        train = rows - val - test
        if train >= max(kept + 1, context + horizon):
            return Splits(range(train), range(train, rows - test), range(rows - test, rows))
    return usual


def make_room(data: ForecastingData, horizon: int, input_len: int) -> ForecastingData:
    """A user's own data with validation and test rows that hold the horizon.

    Those of several series hold a whole window: each split is one segment of a series. Data that
    are not split in the default way stay as they are.
    """
    from sacm.data.forecasting import split_major  # needs pandas, which predictions do not

    positions = data.last_rows(len(data.values))
    if not data.reach_back or any(
        not np.array_equal(_lengths(data, name), [len(part) for part in split_by_ratio(len(rows))])
        for name, rows in positions.items()
    ):
        return data
    context = input_len if len(positions) > 1 else 0
    own = {name: divide(len(rows), horizon, context) for name, rows in positions.items()}
    if all(splits == split_by_ratio(len(positions[name])) for name, splits in own.items()):
        return data
    if len(positions) == 1:
        return replace(data, splits=next(iter(own.values())))
    ends = np.cumsum([0, *map(len, positions.values())])
    series = [
        Segment(name, int(start), int(stop))
        for name, start, stop in zip(positions, ends[:-1], ends[1:], strict=True)
    ]
    order, segments, borders = split_major(series, list(own.values()))
    chosen = np.concatenate(list(positions.values()))[order]
    arrays: dict[str, Any] = {
        name: getattr(data, name)[chosen]
        for name in ("values", "timestamps", "targets", "observed", "broken", "covariates")
        if getattr(data, name) is not None
    }
    return replace(data, splits=borders, segments=segments, **arrays)


def _lengths(data: ForecastingData, name: str) -> list[int]:
    """Rows of a series in each split."""
    places = [segment for segment in data.segments if segment.name == name]
    return [
        sum(max(0, min(s.stop, part.stop) - max(s.start, part.start)) for s in places)
        for part in data.splits
    ]
