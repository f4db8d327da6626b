"""Rows in order of time, on the grid of the commonest step; what is missing there stays empty."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pandas as pd
from pandas.tseries.frequencies import to_offset

from sacm.data.numbers import Reading, flag
from sacm.errors import ArgumentError, DataError

MANY_INSERTED = 0.1  # share of rows that were not there, above which a note names the option
MOST_INSERTED = 0.5  # share above which a table is refused
LARGEST_JITTER = 0.1  # of the step, by which times may lie beside the grid
NEAR_STEP = 0.05  # relative difference between the usual step and a round one
SAME_STEP = 0.9  # share of the series of a table that must have one step
FAR_ROWS = 20  # grid rows a row beyond which a date must be a mistake
FEWEST_ROWS = 3  # rows that show a step
LONGEST = 12  # usual steps that a proposed one may last
ROUND_STEPS = (
    *("10ms", "20ms", "50ms", "100ms", "200ms", "500ms", "1s", "2s", "5s", "10s", "15s", "30s"),
    *("1min", "2min", "5min", "10min", "15min", "20min", "30min", "1h", "2h", "3h", "4h", "6h"),
    *("8h", "12h", "1D", "7D", "30D"),
)


@dataclass
class Rows:
    """The rows of a table, series after series, each in order of time.

    Attributes:
        values: `[T, K]` float64, NaN where nothing was measured.
        stamps: `[T]` datetime64; None without dates.
        order: `[T]` position of each row in the user's table, -1 for an inserted one.
        ends: The first row of every series, and the row after the last.
        step: The time step as a pandas alias, if the rows lie on a grid.
    """

    values: np.ndarray
    stamps: np.ndarray | None
    order: np.ndarray
    ends: list[int]
    step: str | None = None


@dataclass
class _Series:
    """One series on its way to the grid."""

    label: str  # how errors begin, where there are several series
    index: pd.DatetimeIndex
    values: np.ndarray
    order: np.ndarray

    def keep(self, rows: np.ndarray) -> None:
        """Keep some of the rows."""
        self.index, self.values, self.order = self.index[rows], self.values[rows], self.order[rows]

    def row(self, place: int) -> str:
        """A time, and its row in the user's table."""
        return f"{self.index[place]} (row {int(self.order[place]) + 1})"


def order_rows(
    values: np.ndarray,
    stamps: pd.DatetimeIndex,
    series: list[tuple[str, np.ndarray]],
    reading: Reading,
    *,
    grid: bool = True,
) -> Rows:
    """Put the rows of every series in order of time and on a grid.

    Args:
        values: `[T, K]` in the order of the table.
        stamps: Times `[T]`.
        series: Name and rows of every series.
        reading: The options `frequency`, `resample` and `duplicates` are used; takes notes.
        grid: Whether to insert the rows that a grid lacks; False only says what it lacks.

    Raises:
        DataError: The times are on no grid, or a time occurs twice; the sentence names the option.
        ArgumentError: A step is not known.
    """
    resample, asked = reading.options.resample, reading.options.frequency
    check_frequency(asked)
    check_frequency(resample)
    parts = []
    for name, rows in series:
        label = f"series {name!r}: " if len(series) > 1 else ""
        parts.append(_Series(label, stamps.take(rows), values[rows], rows))
    _sort(parts, reading)
    counts: Counter[str] = Counter()
    for part in parts:
        _merge_duplicates(part, counts, reading)
        if resample:
            _average(part, resample)
    for sentence, count in counts.items():
        reading.note(f"{sentence}: {count:,}.")
    if resample:
        reading.note(f"Rows were averaged into steps of {resample} ({flag('resample')}).")
    step = asked or resample or _common_step(parts, reading, strict=grid)
    if step is not None:
        try:
            step = _lay_on_grid(parts, step, reading, insert=grid)
        except DataError as error:
            if grid:
                raise
            said = str(error).removeprefix(f"{reading.where}: ")
            reading.note(f"Rows are taken in their order: {said}")
            step = None
    return Rows(
        values=np.concatenate([part.values for part in parts]),
        stamps=np.concatenate([part.index.to_numpy() for part in parts]),
        order=np.concatenate([part.order for part in parts]),
        ends=[0, *np.cumsum([len(part.index) for part in parts]).tolist()],
        step=step,
    )


def _sort(parts: list[_Series], reading: Reading) -> None:
    """Put the rows of every series in order of time."""
    backwards = []
    for part in parts:
        if not part.index.is_monotonic_increasing:
            backwards.append(part.index.is_monotonic_decreasing)
            part.keep(np.argsort(part.index.to_numpy(), kind="stable"))
    if backwards:
        how = "ran from new to old and were turned" if all(backwards) else "were sorted"
        reading.note(f"Rows {how} by time.")


def _merge_duplicates(part: _Series, counts: Counter[str], reading: Reading) -> None:
    """Drop rows that repeat another; merge those of the same time as asked."""
    again = part.index.duplicated()
    if not again.any():
        return
    after = np.flatnonzero(again)
    before, rows = part.values[after - 1], part.values[after]
    repeats = after[((before == rows) | (np.isnan(before) & np.isnan(rows))).all(axis=1)]
    if len(repeats):
        counts["Rows that repeat another were dropped"] += len(repeats)
        part.keep(np.setdiff1d(np.arange(len(part.index)), repeats))
        again = part.index.duplicated()
    how = reading.options.duplicates
    if not again.any() or reading.options.resample:
        return
    usual = pd.Series(part.index).diff().median()
    if how is None and usual <= pd.Timedelta(hours=1) and _are_clock_changes(part.index[again]):
        how = "mean"
        said = f"({flag('zone')} or {flag('duplicates')} decides otherwise)"
        counts[f"Rows of an hour that the clock showed twice were averaged {said}"] += again.sum()
    elif how in (None, "error"):
        raise _duplicate_error(part, again, reading)
    else:
        counts[f"Rows of the same time were merged ({how})"] += again.sum()
    if how == "mean":
        frame = pd.DataFrame(part.values, index=part.index)
        part.values[~again] = frame.groupby(level=0).mean().to_numpy()
    part.keep(np.flatnonzero(~again))


def _duplicate_error(part: _Series, again: np.ndarray, reading: Reading) -> DataError:
    """Name two rows of the same time, and the options that help."""
    place = int(np.flatnonzero(again)[0])
    first, second = sorted(int(row) + 1 for row in part.order[[place - 1, place]])
    said = (
        f"{part.label}rows {first} and {second} have the same time, {part.index[place]} "
        f"({int(again.sum()):,} such rows)"
    )
    hours = part.index.hour
    if again.mean() > 0.3 and hours.min() >= 1 and hours.max() == 12:
        return reading.error(
            f"{said}: the clock shows 1 to 12 without AM or PM. Write hours from 0 to 23, or take "
            f"rows in their order: {flag('ignore')} leaves the time column out."
        )
    return reading.error(
        f"{said}: {flag('duplicates', 'mean')} or {flag('duplicates', 'first')} merges them; if "
        f"there are several series, {flag('id')} names their column."
    )


def _are_clock_changes(times: pd.DatetimeIndex) -> bool:
    """Whether times are all those of Sunday nights when clocks are changed."""
    nights = (times.dayofweek == 6) & (times.hour < 4) & times.month.isin([3, 4, 9, 10, 11])
    days = pd.Series(times.normalize().unique()).diff().dropna() / pd.Timedelta(days=1)
    return bool(len(times) and nights.all() and (days > 100).all())


def _average(part: _Series, step: str) -> None:
    """Average the rows of a series into steps; a step without a row is a gap."""
    mean = pd.DataFrame(part.values, index=part.index).resample(step).mean()
    first = pd.Series(part.order, index=part.index).resample(step).first()
    part.index, part.values = pd.DatetimeIndex(mean.index), mean.to_numpy()
    part.order = first.fillna(-1).to_numpy(dtype=np.int64)


def _common_step(parts: list[_Series], reading: Reading, *, strict: bool) -> str | None:
    """The step of most series; refuse series of different steps if `strict`."""
    found = Counter(find_step(part.index)[0] for part in parts if len(part.index) >= FEWEST_ROWS)
    if not found:
        return None
    (step, count), *_ = found.most_common(1)
    if count >= SAME_STEP * found.total():
        return step
    listed = ", ".join(f"{each}: {number} series" for each, number in found.most_common(3))
    sentence = (
        f"the series have different steps ({listed}): "
        f"{flag('resample', max(found, key=_seconds))} averages them to one step."
    )
    if strict:
        raise reading.error(sentence)
    reading.note(f"Rows are taken in their order: {sentence}")
    return None


def _seconds(step: str) -> float:
    start, offset = pd.Timestamp("2024-01-01"), to_offset(step)
    return float((start + 2 * offset - (start + offset)).total_seconds())


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
    return len(index) / max(find_step(index)[1], len(index))


def _lay_on_grid(parts: list[_Series], step: str, reading: Reading, *, insert: bool) -> str:
    """Insert the rows that a grid lacks, or only say which; the usual name of the step.

    Times a little beside the grid are moved there.
    """
    asked, jitter = reading.options.frequency, 0.0
    grids = []
    for part in parts:
        grid, places, distance = _find_grid(part, step, reading)
        grids.append((grid, places))
        jitter = max(jitter, distance)
    if jitter:
        moved = "were moved there" if insert else f"are left there ({flag('resample')})"
        reading.note(f"Times lay up to {jitter:.3g} s beside their grid and {moved}.")
    total = sum(len(grid) for grid, _ in grids)
    missing = [grid.delete(places) for grid, places in grids]
    _check_missing(missing, total, parts, step, reading, insert=insert)
    longest = max((grid for grid, _ in grids), key=len)
    for part, (grid, places) in zip(parts, grids, strict=True):
        if insert and len(grid) == len(part.index):
            part.index = grid
        elif insert:
            values = np.full((len(grid), part.values.shape[1]), np.nan)
            order = np.full(len(grid), -1)
            values[places], order[places] = part.values, part.order
            part.index, part.values, part.order = grid, values, order
    return asked or (len(longest) >= FEWEST_ROWS and pd.infer_freq(longest)) or step


def _find_grid(
    part: _Series, step: str, reading: Reading
) -> tuple[pd.DatetimeIndex, np.ndarray, float]:
    """The grid of a series, the places of its rows on it, and the largest distance in seconds."""
    index = part.index
    if len(index) < 2:
        return index, np.arange(len(index)), 0.0
    rows = (index[-1] - index[0]).total_seconds() / _seconds(step)
    if rows > FAR_ROWS * len(index) + 1000:
        gap = int(np.argmax(np.diff(index.asi8)))
        far = part.row(gap + 1 if gap + 1 > len(index) / 2 else gap)
        raise reading.error(
            f"{part.label}{far} is far from the other times: correct that row, or leave it out."
        )
    grid = pd.date_range(index[0], index[-1], freq=step)
    places = grid.get_indexer(index) if len(grid) else np.full(len(index), -1)
    if (places >= 0).all():
        return grid, places, 0.0
    snapped = None if reading.options.frequency else _snap(index)
    if snapped is None:
        raise reading.error(
            f"{part.label}times are irregular: {int((places < 0).sum()):,} of {len(places):,} rows "
            f"are off the grid of the commonest step {step} (first "
            f"{part.row(int(np.argmax(places < 0)))}): {flag('resample', _propose_step(index))} "
            f"averages rows into even steps; if there are several series, {flag('id')} names their "
            "column."
        )
    return snapped


def _snap(index: pd.DatetimeIndex) -> tuple[pd.DatetimeIndex, np.ndarray, float] | None:
    """The round grid that times lie close to, their places on it, and the largest distance."""
    usual = pd.Series(index).diff().dropna().median()
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


def _propose_step(index: pd.DatetimeIndex) -> str:
    """A round step of which nearly all hold a row; of which most do, if that is much shorter."""
    nanos = index.as_unit("ns").asi8
    usual, shares = np.median(np.diff(nanos)), {}
    for step in ROUND_STEPS:
        held = np.unique(nanos // pd.Timedelta(step).value)
        shares[step] = len(held) / (held[-1] - held[0] + 1)
    full = next((step for step, share in shares.items() if share > 0.95), ROUND_STEPS[-1])
    if pd.Timedelta(full).value > LONGEST * usual:
        full = next((step for step, share in shares.items() if share > MOST_INSERTED), full)
    return {"30D": "MS", "7D": "W", "1D": "D", "1h": "h"}.get(full, full)


def _check_missing(
    missing: list[pd.DatetimeIndex],
    total: int,
    parts: list[_Series],
    step: str,
    reading: Reading,
    *,
    insert: bool,
) -> None:
    """Say how many rows a grid lacks; refuse more than half unless the step was asked for."""
    count = sum(map(len, missing))
    if not count:
        return
    place = max(range(len(parts)), key=lambda each: len(missing[each]))
    half = count >= MOST_INSERTED * total
    longer = _propose_step(parts[place].index)
    asked = reading.options.frequency or reading.options.resample
    said = (
        f"{count:,} of {total:,} rows on the grid of step {step} are missing (first at "
        f"{missing[place][0]})"
    )
    if half and not asked:
        raise reading.error(
            f"{said}, half of all or more: {flag('resample', longer)} averages rows into longer "
            f"steps, {flag('frequency', step)} keeps the grid with gaps."
        )
    hint = " and are gaps" if insert else ""
    if count > MANY_INSERTED * total and not asked:
        makes_longer = f"{flag('resample', longer)} makes longer steps"
        keeps = f"{flag('frequency', step)} says that the step is right"
        longer_helps = _seconds(longer) > _seconds(step)
        hint += f"; that is {count / total:.0%} of all: {makes_longer if longer_helps else keeps}"
    if _seconds(step) <= 3600 and all(_are_clock_changes(each) for each in missing if len(each)):
        hint += f"; clocks are put forward in such nights: {flag('zone')} names the time zone"
    reading.note(f"{said}{hint}.")


def check_frequency(frequency: str | None) -> None:
    """Refuse what pandas does not know as a frequency."""
    try:
        to_offset(frequency)
    except ValueError as error:
        raise ArgumentError(
            f"{frequency!r} is not a frequency: use a pandas alias such as 'h', '15min' or 'MS'."
        ) from error
