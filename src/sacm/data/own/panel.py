"""Several series in one long table: `unique_id, ds, y`."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from sacm.data.datasets import ForecastingData, Segment
from sacm.data.splits import Splits, split_by_ratio
from sacm.data.tables import gaps
from sacm.data.tables.columns import coarse_note, numbers
from sacm.data.tables.timeline import Irregular, timeline
from sacm.errors import ArgumentError, DataError

if TYPE_CHECKING:
    import pandas as pd

ID_COLUMN = "unique_id"


class OneSeries(NamedTuple):
    """One series of a panel, in order of time; NaN where a row was missing."""

    name: str
    values: np.ndarray  # [T]
    timestamps: np.ndarray | None
    frequency: str | None
    notes: tuple[str, ...]


class Joined(NamedTuple):
    """All series in one array."""

    values: np.ndarray  # [T, C]
    columns: tuple[str, ...]
    splits: Splits
    timestamps: np.ndarray | None
    observed: np.ndarray | None
    segments: tuple[Segment, ...]


def panel_data(
    table: pd.DataFrame,
    label: str,
    *,
    where: str,
    ratios: tuple[float, float, float],
    missing: gaps.Policy,
    irregular: Irregular,
    frequency: str | None,
    layout: Literal["auto", "channels", "series"],
) -> ForecastingData:
    """A long table as channels side by side, or as separate series end to end."""
    if layout not in ("auto", "channels", "series"):
        raise ArgumentError(f"layout must be auto, channels or series, got {layout!r}.")
    if table[ID_COLUMN].isna().any():
        row = int(np.flatnonzero(table[ID_COLUMN].isna())[0])
        raise DataError(f"{where}: row {row + 1} has no {ID_COLUMN}.")
    series = [
        one_series(str(name), group, where, frequency=frequency, irregular=irregular)
        for name, group in table.groupby(ID_COLUMN, sort=False)
    ]
    together = share_timestamps(series)
    if layout == "channels" and not together:
        raise DataError(
            f"{where}: the {len(series)} series do not share all timestamps, so they cannot be "
            "channels of one: give them the same timestamps, or use layout='series'."
        )
    ignored = [str(column) for column in table.columns if column not in (ID_COLUMN, "ds", "y")]
    absent = sum(int(np.isnan(one.values).sum()) for one in series)
    join = side_by_side if together and layout != "series" else end_to_end
    joined = join(series, where, ratios=ratios, missing=missing)
    return ForecastingData(
        name=label,
        values=joined.values,
        columns=joined.columns,
        splits=joined.splits,
        timestamps=joined.timestamps,
        frequency=series[0].frequency,
        observed=joined.observed,
        segments=joined.segments,
        notes=panel_notes(series, ignored, absent),
    )


def one_series(
    name: str, group: pd.DataFrame, where: str, *, frequency: str | None, irregular: Irregular
) -> OneSeries:
    """The rows of one `unique_id`."""
    where = f"{where}, series {name!r}"
    group = group.reset_index(drop=True)
    line = timeline(group["ds"], len(group), where=where, frequency=frequency, irregular=irregular)
    values = numbers(group["y"], where).astype(np.float32)[line.rows]
    values[line.rows < 0] = np.nan
    line = line.noting(coarse_note(group[["y"]]))
    return OneSeries(name, values, line.timestamps, line.frequency, line.notes)


def share_timestamps(series: list[OneSeries]) -> bool:
    """Whether all series have the same timestamps."""
    first = series[0]
    return all(
        len(one.values) == len(first.values) and equal_timestamps(one.timestamps, first.timestamps)
        for one in series
    )


def equal_timestamps(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    """Whether two series have equal timestamps, or none."""
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)


def side_by_side(
    series: list[OneSeries], where: str, *, ratios: tuple[float, float, float], missing: gaps.Policy
) -> Joined:
    """Every series a channel."""
    values = np.stack([one.values for one in series], axis=1)
    columns = tuple(one.name for one in series)
    splits = split_by_ratio(len(values), ratios)
    filled = gaps.fill(values, splits, policy=missing, columns=columns, where=where)
    return Joined(filled.values, columns, splits, series[0].timestamps, filled.observed, ())


def end_to_end(
    series: list[OneSeries], where: str, *, ratios: tuple[float, float, float], missing: gaps.Policy
) -> Joined:
    """Every series a segment of one channel: all training parts, then validation, then test."""
    columns = [one.values[:, None] for one in series]
    splits = [split_by_ratio(len(one.values), ratios) for one in series]
    filled = [
        gaps.fill(
            column,
            split,
            policy=missing,
            columns=("y",),
            where=f"{where}, series {one.name!r}",
        )
        for one, column, split in zip(series, columns, splits, strict=True)
    ]
    plan, segments, borders = split_major([one.name for one in series], splits)
    values = np.concatenate([filled[i].values[rows.start : rows.stop] for i, rows in plan])
    observed = None
    if missing == "mask":
        whole = [
            np.ones(one.values.shape, bool) if one.observed is None else one.observed
            for one in filled
        ]
        observed = np.concatenate([whole[i][rows.start : rows.stop] for i, rows in plan])
    stamps = [one.timestamps for one in series if one.timestamps is not None]
    timestamps = None
    if len(stamps) == len(series):
        timestamps = np.concatenate([stamps[i][rows.start : rows.stop] for i, rows in plan])
    return Joined(values, ("y",), borders, timestamps, observed, segments)


def split_major(
    names: list[str], splits: list[Splits]
) -> tuple[list[tuple[int, range]], tuple[Segment, ...], Splits]:
    """Which rows of which series follow each other, and where the borders then are."""
    plan: list[tuple[int, range]] = []
    segments: list[Segment] = []
    ends = [0]
    for split in ("train", "val", "test"):
        position = ends[-1]
        for number, own in enumerate(splits):
            rows = own[split]
            if len(rows):
                plan.append((number, rows))
                segments.append(Segment(names[number], position, position + len(rows)))
                position += len(rows)
        ends.append(position)
    borders = Splits(*(range(start, stop) for start, stop in pairwise(ends)))
    return plan, tuple(segments), borders


def panel_notes(series: list[OneSeries], ignored: list[str], missing: int) -> tuple[str, ...]:
    """Notes on the whole panel."""
    notes = [f"Columns not used: {', '.join(ignored)}."] if ignored else []
    for one in series:
        if one.notes:
            more = sum(bool(other.notes) for other in series) - 1
            rest = f" (and {more} more series)" if more else ""
            notes.append(f"Series {one.name!r}{rest}: {' '.join(one.notes)}")
            break
    if missing:
        notes.append(f"{missing:,} missing values were interpolated.")
    return tuple(notes)
