"""Rows in order of time, on the grid of the commonest step; what is missing there stays empty."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

import numpy as np
import pandas as pd
from pandas.tseries.frequencies import to_offset

from sacm.errors import ArgumentError, DataError

MANY_INSERTED = 0.1  # share of rows that were not there, above which a note names the option
MOST_INSERTED = 0.5  # share above which a table is refused
LARGEST_JITTER = 0.1  # of the step, by which times may lie beside the grid
NEAR_STEP = 0.05  # relative difference between the usual step and a round one
SAME_STEP = 0.9  # share of the series of a table that must have one step
FAR_ROWS = 20  # grid rows a row beyond which a date must be a mistake
FEWEST_ROWS = 3  # rows that show a step
ROUND_STEPS = (
    *("10ms", "20ms", "50ms", "100ms", "200ms", "500ms", "1s", "2s", "5s", "10s", "15s", "30s"),
    *("1min", "2min", "5min", "10min", "15min", "20min", "30min", "1h", "2h", "3h", "4h", "6h"),
    *("8h", "12h", "1D", "7D", "30D"),
)
Duplicates = Literal["mean", "first", "error"]


@dataclass
class Rows:
    """The rows of a table, series after series, each in order of time.

    Attributes:
        values: `[T, K]` float64, NaN where nothing was measured.
        stamps: `[T]` datetime64; None without dates.
        order: `[T]` position of each row in the user's table, -1 for an inserted one.
        ends: The first row of every series, and the row after the last.
        step: The time step as a pandas alias, if the rows lie on a grid.
        inserted: Number of rows that were inserted.
        notes: Takes a sentence on whatever was done.
    """

    values: np.ndarray
    stamps: np.ndarray | None
    order: np.ndarray
    ends: list[int]
    step: str | None = None
    inserted: int = 0
    notes: list[str] = field(default_factory=list)


def order_rows(
    values: np.ndarray,
    stamps: pd.DatetimeIndex,
    series: list[tuple[str, np.ndarray]],
    where: str,
    *,
    grid: bool = True,
    frequency: str | None = None,
    resample: str | None = None,
    duplicates: Duplicates | None = None,
) -> Rows:
    """Put the rows of every series in order of time and on a grid.

    Args:
        values: `[T, K]` in the order of the table.
        stamps: Times `[T]`.
        series: Name and rows of every series.
        where: What errors call the table.
        grid: Whether to insert the rows that a grid lacks; False only sorts.
        frequency: The step. Default: the commonest.
        resample: The step into which rows are averaged.
        duplicates: What to do with rows of the same time; None refuses unless a clock was put back.

    Raises:
        DataError: The times are on no grid, or a time occurs twice; the sentence names the option.
        ArgumentError: A step is not known.
    """
    check_frequency(frequency)
    check_frequency(resample)
    notes: list[str] = []
    parts = [_sort(values, stamps, rows) for _, rows in series]
    backwards = [part.backwards for part in parts if part.unordered]
    if backwards:
        how = "ran from new to old and were turned" if all(backwards) else "were sorted"
        notes.append(f"Rows {how} by time.")
    names = [name for name, _ in series]
    for name, part in zip(names, parts, strict=True):
        at = where if len(parts) == 1 else f"{where}, series {name!r}"
        _merge_duplicates(part, at, None if resample else duplicates, bool(resample), notes)
        if resample:
            _average(part, resample)
    notes = _count_alike(notes)
    step = frequency or resample
    if step is None:
        step = _common_step(parts, where) if grid else _regular_step(parts)
    if resample:
        notes.append(f"Rows were averaged into steps of {resample} (resample=).")
    inserted = 0
    if grid and step is not None:
        for name, part in zip(names, parts, strict=True):
            at = where if len(parts) == 1 else f"{where}, series {name!r}"
            before = len(part.index)
            _fill_grid(part, step, at, notes, asked=frequency is not None)
            inserted += len(part.index) - before
        notes = _count_alike(notes)
        total = sum(len(part.index) for part in parts)
        _check_inserted(inserted, total, parts, step, where, notes, asked=frequency or resample)
        longest = max(parts, key=lambda part: len(part.index)).index
        step = frequency or _canonical(longest, step)
    ends = [0, *np.cumsum([len(part.index) for part in parts]).tolist()]
    return Rows(
        values=np.concatenate([part.values for part in parts]),
        stamps=np.concatenate([part.index.to_numpy() for part in parts]),
        order=np.concatenate([part.order for part in parts]),
        ends=ends,
        step=step,
        inserted=inserted,
        notes=notes,
    )


@dataclass
class _Part:
    """One series on its way to the grid."""

    index: pd.DatetimeIndex
    values: np.ndarray
    order: np.ndarray
    unordered: bool
    backwards: bool


def _sort(values: np.ndarray, stamps: pd.DatetimeIndex, rows: np.ndarray) -> _Part:
    whole = len(rows) == len(stamps)
    own = stamps if whole and _is_straight(rows) else stamps.take(rows)
    if own.is_monotonic_increasing:
        return _Part(own, values[rows], rows, False, False)
    backwards = own.is_monotonic_decreasing
    order = np.argsort(own.to_numpy(), kind="stable")
    return _Part(own.take(order), values[rows[order]], rows[order], True, backwards)


def _is_straight(rows: np.ndarray) -> bool:
    return bool(len(rows) and rows[0] == 0 and (np.diff(rows) == 1).all())


def _merge_duplicates(
    part: _Part, where: str, how: Duplicates | None, resampled: bool, notes: list[str]
) -> None:
    """Drop rows that repeat another; merge those of the same time as asked."""
    again = part.index.duplicated()
    if not again.any():
        return
    before = np.flatnonzero(again) - 1
    after = before + 1
    same = (part.values[before] == part.values[after]) | (
        np.isnan(part.values[before]) & np.isnan(part.values[after])
    )
    repeats = after[same.all(axis=1)]
    if len(repeats):
        notes.append(f"{len(repeats)} rows that repeat another were dropped.")
        _keep(part, np.setdiff1d(np.arange(len(part.index)), repeats))
        again = part.index.duplicated()
    if not again.any() or resampled:
        return
    if how in (None, "error"):
        if how is None and _clock_was_put_back(part.index, again):
            how = "mean"
            notes.append(
                f"The clock was put back at {int(again.sum())} times: rows of the same hour were "
                "averaged (zone= or duplicates= decides otherwise)."
            )
        else:
            place = int(np.flatnonzero(again)[0])
            first, second = sorted(int(row) + 1 for row in part.order[[place - 1, place]])
            raise DataError(
                f"{where}: rows {first} and {second} have the same time, {part.index[place]} "
                f"({int(again.sum()):,} such rows): duplicates='mean' or 'first' (--duplicates) "
                "merges them; if there are several series, id= (--id) names their column."
            )
    else:
        notes.append(f"{int(again.sum())} rows of the same time were merged ({how}).")
    if how == "mean":
        frame = pd.DataFrame(part.values, index=part.index)
        part.values[~again] = frame.groupby(level=0).mean().to_numpy()
    _keep(part, np.flatnonzero(~again))


def _keep(part: _Part, rows: np.ndarray) -> None:
    part.index, part.values, part.order = part.index[rows], part.values[rows], part.order[rows]


def _clock_was_put_back(index: pd.DatetimeIndex, again: np.ndarray) -> bool:
    """Whether repeated times are all those of Sunday nights when clocks are put back."""
    twice = index[again]
    usual = pd.Series(index).diff().median()
    nights = (twice.dayofweek == 6) & (twice.hour < 4) & twice.month.isin([3, 4, 9, 10, 11])
    days_apart = pd.Series(twice.normalize().unique()).diff().dropna() / pd.Timedelta(days=1)
    return bool(nights.all() and (days_apart > 100).all() and usual <= pd.Timedelta(hours=1))


def _average(part: _Part, step: str) -> None:
    """Average the rows of a series into steps; a step without a row is a gap."""
    frame = pd.DataFrame(part.values, index=part.index)
    first = pd.Series(part.order, index=part.index).resample(step).first()
    mean = frame.resample(step).mean()
    part.index, part.values = pd.DatetimeIndex(mean.index), mean.to_numpy()
    part.order = first.fillna(-1).to_numpy(dtype=np.int64)


def _regular_step(parts: list[_Part]) -> str | None:
    """The step of rows that all lie on a grid."""
    longest = max(parts, key=lambda part: len(part.index)).index
    return pd.infer_freq(longest) if len(longest) >= FEWEST_ROWS else None


def _common_step(parts: list[_Part], where: str) -> str | None:
    """The step of most series; refuse series of different steps."""
    found = Counter(find_step(part.index)[0] for part in parts if len(part.index) >= FEWEST_ROWS)
    if not found:
        return None
    (step, count), *_ = found.most_common(1)
    if count < SAME_STEP * found.total():
        listed = ", ".join(f"{each}: {number} series" for each, number in found.most_common(3))
        longest = max(found, key=lambda each: _seconds(each))
        raise DataError(
            f"{where}: the series have different steps ({listed}): resample={longest!r} "
            "(--resample) averages them to one step, ignore= and id= choose among them."
        )
    return step


def _seconds(step: str) -> float:
    start = pd.Timestamp("2024-01-01")
    return float((start + 2 * to_offset(step) - (start + to_offset(step))).total_seconds())


def find_step(index: pd.DatetimeIndex) -> tuple[str, float]:
    """The commonest step of sorted times as a pandas alias, and the rows of its grid."""
    regular = pd.infer_freq(index)
    if regular is not None:
        return regular, float(len(index))
    months = np.diff(index.year * 12 + index.month)
    ends = bool(index.is_month_end.all())
    if (months > 0).all() and (ends or (index.day == 1).all()) and index.equals(index.normalize()):
        every = Counter(months.tolist()).most_common(1)[0][0]
        alias = f"{every if every > 1 else ''}M{'E' if ends else 'S'}"
        return alias, float(months.sum()) / every + 1
    nanos = np.diff(index.as_unit("ns").asi8)
    usual = pd.Timedelta(int(Counter(nanos.tolist()).most_common(1)[0][0]))
    if usual == pd.Timedelta(days=1) and len(index) > 9 and (index.dayofweek < 5).all():
        return "B", float(np.busday_count(index[0].date(), index[-1].date())) + 1
    rows = float((index[-1] - index[0]) / usual) + 1
    days = usual / pd.Timedelta(days=1)
    if days == 7:
        return f"W-{index[0]:%a}".upper(), rows
    if days % 1 == 0:
        return (f"{int(days)}D" if days > 1 else "D"), rows
    return str(to_offset(usual).freqstr), rows


def coverage(stamps: pd.DatetimeIndex) -> float:
    """The share of the grid of the commonest step that times, in any order, fill."""
    index = stamps.unique().sort_values()
    if len(index) < FEWEST_ROWS:
        return 1.0
    _, rows = find_step(index)
    return len(index) / max(rows, len(index))


def _fill_grid(part: _Part, step: str, where: str, notes: list[str], *, asked: bool) -> None:
    """Insert the rows that a grid lacks; times a little beside it are moved there."""
    if len(part.index) < 2:
        return
    rows = (part.index[-1] - part.index[0]).total_seconds() / _seconds(step)
    if rows > FAR_ROWS * len(part.index) + 1000:
        raise _far_error(part, where)
    grid = pd.date_range(part.index[0], part.index[-1], freq=step)
    places = grid.get_indexer(part.index) if len(grid) else np.full(len(part.index), -1)
    if (places < 0).any():
        snapped = None if asked else _snap(part.index)
        if snapped is None:
            raise _irregular_error(part, places, step, where)
        grid, places, jitter = snapped
        notes.append(f"Times lay up to {jitter:.3g} s beside their grid and were moved there.")
    if len(grid) == len(part.index):
        part.index = grid
        return
    values = np.full((len(grid), part.values.shape[1]), np.nan)
    order = np.full(len(grid), -1)
    values[places], order[places] = part.values, part.order
    part.index, part.values, part.order = grid, values, order


def _snap(index: pd.DatetimeIndex) -> tuple[pd.DatetimeIndex, np.ndarray, float] | None:
    """The round grid that times lie close to, their places on it, and the largest distance."""
    steps = pd.Series(index).diff().dropna()
    usual = steps.median()
    near = min(ROUND_STEPS, key=lambda step: abs(np.log(pd.Timedelta(step) / usual)))
    step = pd.Timedelta(near)
    if abs(step / usual - 1) > NEAR_STEP:
        return None
    nanos, size = index.as_unit("ns").asi8, step.value
    phase = np.median((nanos - nanos[0] + size // 2) % size) - size // 2 + nanos[0] % size
    if abs(phase) < LARGEST_JITTER * size:
        phase = 0
    places = np.round((nanos - phase) / size).astype(np.int64)
    distance = np.abs(nanos - phase - places * size).max()
    if distance > LARGEST_JITTER * size or (np.diff(places) < 1).any():
        return None
    full = np.arange(places[0], places[-1] + 1) * size + int(phase)
    return pd.DatetimeIndex(full.view("M8[ns]")), places - places[0], distance / 1e9


def propose_step(index: pd.DatetimeIndex) -> str:
    """A round step near the usual one, for `resample`."""
    nanos = np.diff(index.as_unit("ns").asi8)
    return _round_step(pd.Timedelta(int(np.quantile(nanos, 0.75))))


def _round_step(length: pd.Timedelta) -> str:
    floor = max(length, pd.Timedelta("10ms"))
    near = min(ROUND_STEPS, key=lambda step: abs(np.log(pd.Timedelta(step) / floor)))
    return {"30D": "MS", "7D": "W", "1D": "D", "1h": "h"}.get(near, near)


def _far_error(part: _Part, where: str) -> DataError:
    """Name the row whose date is far from all others."""
    gap = int(np.argmax(np.diff(part.index.asi8)))
    row = gap + 1 if gap + 1 > len(part.index) / 2 else gap
    return DataError(
        f"{where}: {part.index[row]} (row {int(part.order[row]) + 1}) is far from the other times: "
        f"correct that row, or average rows with resample={propose_step(part.index)!r} "
        "(--resample)."
    )


def _irregular_error(part: _Part, places: np.ndarray, step: str, where: str) -> DataError:
    """The error for times that lie on no grid."""
    odd = int(np.flatnonzero(places < 0)[0])
    return DataError(
        f"{where}: times are irregular: {int((places < 0).sum()):,} of {len(places):,} rows are "
        f"off the grid of the commonest step {step} (first {part.index[odd]}, row "
        f"{int(part.order[odd]) + 1}): resample={propose_step(part.index)!r} (--resample) averages "
        "rows into even steps; if there are several series, id= (--id) names their column."
    )


def _check_inserted(
    inserted: int,
    total: int,
    parts: list[_Part],
    step: str,
    where: str,
    notes: list[str],
    *,
    asked: str | None,
) -> None:
    """Say how many rows were inserted; refuse more than half unless the step was asked for."""
    if not inserted:
        return
    share = inserted / total
    part = max(parts, key=lambda each: int((each.order < 0).sum()))
    first = part.index[int(np.flatnonzero(part.order < 0)[0])]
    said = (
        f"{inserted:,} of {total:,} rows on the grid of step {step} were missing (first at {first})"
    )
    present = part.index[part.order >= 0]
    proposal = _round_step((present[-1] - present[0]) / max(1, len(present) - 1) * 2)
    if share >= MOST_INSERTED and not asked and len(parts) == 1:
        raise DataError(
            f"{where}: {said}, half of all or more: resample={proposal!r} (--resample) averages "
            f"rows into longer steps, frequency={step!r} (--frequency) keeps them as gaps."
        )
    hint = ""
    if share > MANY_INSERTED and not asked:
        hint = f"; that is {share:.0%} of all: resample= (--resample) makes longer steps"
    notes.append(f"{said} and are gaps{hint}.")


def _canonical(index: pd.DatetimeIndex, step: str) -> str:
    """The usual alias of the step of a complete grid."""
    if len(index) < FEWEST_ROWS:
        return step
    return pd.infer_freq(index) or step


def _count_alike(notes: list[str]) -> list[str]:
    """Notes of many series, alike ones once."""
    first: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for note in notes:
        kind = "".join(letter for letter in note if not letter.isdigit() and letter not in ".e-")
        first.setdefault(kind, note)
        counts[kind] += 1
    return [
        note if counts[kind] == 1 else f"{note[:-1]} (and in {counts[kind] - 1} more series)."
        for kind, note in first.items()
    ]


def check_frequency(frequency: str | None) -> None:
    """Refuse what pandas does not know as a frequency."""
    try:
        to_offset(frequency)
    except ValueError as error:
        raise ArgumentError(
            f"{frequency!r} is not a frequency: use a pandas alias such as 'h', '15min' or 'MS'."
        ) from error


def runs(ends: list[int]) -> list[range]:
    """The rows between neighbouring ends."""
    return [range(start, stop) for start, stop in pairwise(ends)]
