"""The series of a long table as one `ForecastingData`: side by side, or end to end."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from sacm.data.datasets import ForecastingData, Segment
from sacm.data.gaps import Policy, fill
from sacm.data.splits import Splits, split_by_ratio
from sacm.data.tables.panel import Panel
from sacm.data.tables.table import Table
from sacm.errors import ArgumentError, DataError

Ratios = tuple[float, float, float]
FAR_APART = 2.0  # levels of series, in deviations of one of them


class Joined(NamedTuple):
    """All series in one array."""

    values: np.ndarray  # [T, C]
    columns: tuple[str, ...]
    splits: Splits
    timestamps: np.ndarray | None
    observed: np.ndarray | None
    segments: tuple[Segment, ...]


def panel_data(
    panel: Panel,
    *,
    ratios: Ratios,
    missing: Policy,
    layout: Literal["auto", "channels", "series"],
) -> ForecastingData:
    """Join the series of a panel as channels side by side, or as segments end to end."""
    if layout not in ("auto", "channels", "series"):
        raise ArgumentError(f"layout must be auto, channels or series, got {layout!r}.")
    together = len(panel.names) == 1 and share_timestamps(panel.series)
    if layout == "channels" and not together:
        raise DataError(
            f"{panel.where}: the {len(panel.series)} series do not share all timestamps (or have "
            "several channels each), so they cannot be channels of one: give them the same "
            "timestamps, or use layout='series'."
        )
    join = side_by_side if together and layout != "series" else end_to_end
    joined = join(panel, ratios=ratios, missing=missing)
    return ForecastingData(
        name=panel.name,
        values=joined.values,
        columns=joined.columns,
        splits=joined.splits,
        timestamps=joined.timestamps,
        frequency=panel.series[0].frequency,
        observed=joined.observed,
        segments=joined.segments,
        notes=panel_notes(panel),
        understood=tuple(panel.understood()),
    )


def share_timestamps(series: tuple[Table, ...]) -> bool:
    """Whether all series have the same timestamps."""
    first = series[0]
    return all(
        len(one.values) == len(first.values) and equal_timestamps(one.times, first.times)
        for one in series
    )


def equal_timestamps(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    """Whether two series have equal timestamps, or none."""
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)


def side_by_side(panel: Panel, *, ratios: Ratios, missing: Policy) -> Joined:
    """Every series a channel."""
    values = np.concatenate([one.values for one in panel.series], axis=1)
    columns = tuple(one.name for one in panel.series)
    splits = split_by_ratio(len(values), ratios)
    filled = fill(values, splits, policy=missing, columns=columns, where=panel.where)
    return Joined(filled.values, columns, splits, panel.series[0].times, filled.observed, ())


def end_to_end(panel: Panel, *, ratios: Ratios, missing: Policy) -> Joined:
    """Every series a segment: all training parts, then validation, then test."""
    splits = [split_by_ratio(len(one.values), ratios) for one in panel.series]
    filled = [one.fill(own, missing) for one, own in zip(panel.series, splits, strict=True)]
    plan, segments, borders = split_major([one.name for one in panel.series], splits)
    values = np.concatenate([filled[i].values[rows.start : rows.stop] for i, rows in plan])
    observed = None
    if missing == "mask":
        whole = [
            np.ones(one.values.shape, bool) if one.observed is None else one.observed
            for one in filled
        ]
        observed = np.concatenate([whole[i][rows.start : rows.stop] for i, rows in plan])
    stamps = [one.times for one in filled if one.times is not None]
    timestamps = None
    if len(stamps) == len(filled):
        timestamps = np.concatenate([stamps[i][rows.start : rows.stop] for i, rows in plan])
    return Joined(values, panel.names, borders, timestamps, observed, segments)


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


def level_note(panel: Panel) -> tuple[str, ...]:
    """Say that series of different levels share one scaler, which makes z-scored errors small."""
    if len(panel.series) < 2:
        return ()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a series without any value
        means = np.array([np.nanmean(one.values, axis=0) for one in panel.series])  # [S, C]
        own = np.nanmedian([np.nanstd(one.values, axis=0) for one in panel.series], axis=0)
        apart = np.nanstd(means, axis=0) > FAR_APART * own
    if not apart.any():
        return ()
    name = panel.names[int(np.flatnonzero(apart)[0])]
    return (
        f"The series differ more in level than they change (column {name!r}) and share one scaler: "
        "judge by errors in raw units, z-scored ones look small.",
    )


def panel_notes(panel: Panel) -> tuple[str, ...]:
    """Notes on the whole panel; of those on single series, the first."""
    notes = [*panel.notes]
    told = [one for one in panel.series if one.notes]
    if told:
        rest = f" (and {len(told) - 1} more series)" if len(told) > 1 else ""
        notes.append(f"Series {told[0].name!r}{rest}: {' '.join(told[0].notes)}")
    missing = sum(int(np.isnan(one.values).sum()) for one in panel.series)
    if missing:
        notes.append(f"{missing:,} missing values were interpolated.")
    return tuple(notes)
