"""Series of a table, each in order of time on the grid of its commonest step; gaps stay empty."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas.tseries.frequencies import to_offset

from sacm.data.columns import (
    Reading,
    flag,
    holds_numbers,
    is_text,
    part_of,
    plain_name,
    some,
    words_of,
)
from sacm.errors import ArgumentError, DataError

MANY_INSERTED = 0.1  # share of rows that were not there, above which a note names the option
MOST_INSERTED = 0.5  # share above which a table is refused
LARGEST_JITTER = 0.1  # of the step, by which times may lie beside the grid
NEAR_STEP = 0.05  # relative difference between the usual step and a round one
FAR_ROWS = 20  # grid rows a row beyond which a date must be a mistake
FEWEST_ROWS = 3  # rows that show a step
LONGEST = 12  # usual steps that a proposed one may last
REPEATED = 0.75  # share of different times below which several series are looked for
ROUND_STEPS = (
    *("10ms", "20ms", "50ms", "100ms", "200ms", "500ms", "1s", "2s", "5s", "10s", "15s", "30s"),
    *("1min", "2min", "5min", "10min", "15min", "20min", "30min", "h", "2h", "3h", "4h", "6h"),
    *("8h", "12h", "D", "7D", "30D"),
)
ID_NAMES = words_of(
    "uniqueid id seriesid series tsid itemid item sku product store storeid shop dept sensor "
    "sensorid station stationid device deviceid machine machineid unit unitid asset meter meterid "
    "site siteid plant location locationid customer customerid entity group"
)
ORDER = "order"  # the column of row numbers while a series is put on its grid


def find_ids(
    frame: pd.DataFrame, stamps: pd.DatetimeIndex, skip: Sequence[str], reading: Reading
) -> list[str]:
    """The column, or two, that tell series apart where times repeat; empty for one series."""
    distinct = stamps.nunique()
    if distinct == len(frame):
        return []
    names = [name for name in frame.columns if name not in skip and part_of(name) is None]
    words = [name for name in names if is_text(frame[name]) and not holds_numbers(frame[name])]
    numbers = [name for name in names if name not in words and frame[name].dtype.kind != "f"]
    usual = [name for name in numbers if plain_name(name) in ID_NAMES]
    pools: list[Iterable[tuple[str, ...]]] = [[(name,) for name in words], [(n,) for n in usual]]
    if distinct < REPEATED * len(frame):
        pools += [[(name,) for name in numbers], combinations([*words, *usual], 2)]
    able: list[tuple[str, ...]] = []
    for pool in pools:
        for columns in pool:
            # A column that only renames the series of another one is no further candidate.
            renamed = any(
                frame.groupby(list(other))[columns[-1]].nunique().max() == 1 for other in able
            )
            if not renamed and _tells_apart(frame[list(columns)], stamps):
                able.append(columns)
        if able:
            break
    if len(able) > 1:
        raise reading.error(
            f"times repeat and several columns can tell series apart "
            f"({some(map(' + '.join, able))}): {flag('id', ','.join(able[0]))} names one of them."
        )
    if able:
        reading.note(
            f"Column {' + '.join(able[0])!r} was taken to tell series apart: {flag('id')} names "
            f"another, {flag('ignore')} leaves it out."
        )
    return list(able[0]) if able else []


def _tells_apart(columns: pd.DataFrame, stamps: pd.DatetimeIndex) -> bool:
    """Whether no values of some columns have a time twice, and each column has few values."""
    from sacm.data.times import is_calendar

    if columns.isna().any(axis=None):
        return False
    text = columns.reset_index(drop=True).astype(str)
    for name in columns.columns:
        if not 1 < text[name].nunique() <= len(text) / 2 or is_calendar(text[name]):
            return False
    return not bool(text.assign(**{"the time": stamps}).duplicated().any())


def series_rows(
    frame: pd.DataFrame, ids: Sequence[str], reading: Reading
) -> tuple[pd.Series | None, list[tuple[str, np.ndarray]]]:
    """The column of names, and name and rows of every series in the order in which they occur."""
    if not ids:
        return None, [("", np.arange(len(frame)))]
    for name in ids:
        if frame[name].isna().any():
            row = int(np.flatnonzero(frame[name].isna())[0])
            raise reading.error(f"row {row + 1} has no {name}.")
    column = frame[ids[0]]
    for name in ids[1:]:
        column = column.astype(str) + "/" + frame[name].astype(str)
    codes, keys = pd.factorize(column)
    borders = np.cumsum(np.bincount(codes, minlength=len(keys)))[:-1]
    rows = np.split(np.argsort(codes, kind="stable"), borders)
    return column.rename("/".join(ids)), list(zip(map(str, keys), rows, strict=True))


class Rows(NamedTuple):
    """The rows of a table, series after series, each in order of time."""

    values: np.ndarray  # [T, K] float64, NaN where nothing was measured
    stamps: np.ndarray | None  # [T] datetime64; None without dates
    order: np.ndarray  # [T] position in the user's table, -1 for an inserted row
    ends: list[int]  # the first row of every series, and the row after the last
    step: str | None  # as a pandas alias, if the rows lie on a grid


def order_rows(
    values: np.ndarray,
    stamps: pd.DatetimeIndex | None,
    series: list[tuple[str, np.ndarray]],
    reading: Reading,
    *,
    grid: bool = True,
) -> Rows:
    """Put the rows of every series in order of time and on a grid; without times as they come."""
    resample, asked = reading.options.resample, reading.options.frequency
    check_frequency(asked)
    check_frequency(resample)
    if stamps is None:
        if resample is not None:
            raise reading.error(
                f"there are no dates to resample by: {flag('time')} names a column."
            )
        order = np.concatenate([rows for _, rows in series])
        ends = [0, *np.cumsum([len(rows) for _, rows in series]).tolist()]
        return Rows(values[order], None, order, ends, asked)
    frames: dict[str, pd.DataFrame] = {}
    counts: Counter[str] = Counter()
    for name, rows in series:
        frame = pd.DataFrame(values[rows], index=stamps.take(rows)).assign(**{ORDER: rows})
        if not frame.index.is_monotonic_increasing:
            counts["Rows were sorted by time"] += len(frame)
            frame = frame.sort_index(kind="stable")
        label = f"series {name!r}: " if len(series) > 1 else ""
        frame = _merge_duplicates(frame, label, counts, reading)
        if resample:
            first = frame[ORDER].resample(resample).first().fillna(-1)
            frame = frame.resample(resample).mean().assign(**{ORDER: first})
        frames[label] = frame
    for sentence, count in counts.items():
        reading.note(f"{sentence}: {count:,}.")
    if resample:
        reading.note(f"Rows were averaged into steps of {resample} ({flag('resample')}).")
    indices = [pd.DatetimeIndex(frame.index) for frame in frames.values()]
    steps = [find_step(index)[0] for index in indices if len(index) >= FEWEST_ROWS and not asked]
    step = asked or resample or (Counter(steps).most_common(1)[0][0] if steps else None)
    try:
        if step is not None:
            frames, step = _lay_on_grid(frames, step, reading, insert=grid)
    except DataError as error:
        if grid:
            raise
        said = str(error).removeprefix(f"{reading.where}: ")
        reading.note(f"Rows are taken in their order: {said}")
        step = None
    whole = pd.concat(frames.values())
    return Rows(
        values=whole.drop(columns=ORDER).to_numpy(np.float64),
        stamps=whole.index.to_numpy(),
        order=whole[ORDER].to_numpy(np.int64),
        ends=[0, *np.cumsum([len(frame) for frame in frames.values()]).tolist()],
        step=step,
    )


def _merge_duplicates(
    frame: pd.DataFrame, label: str, counts: Counter[str], reading: Reading
) -> pd.DataFrame:
    """Drop rows that repeat another; merge those of the same time as asked."""
    again = frame.index.duplicated()
    if not again.any():
        return frame
    same = frame.drop(columns=ORDER).reset_index().duplicated().to_numpy()
    if same.any():
        counts["Rows that repeat another were dropped"] += int(same.sum())
        frame, again = frame[~same], again[~same]
    how = reading.options.duplicates
    if not again.any() or reading.options.resample:
        return frame
    usual: Any = pd.Series(frame.index).diff().median()
    times = pd.DatetimeIndex(frame.index[again])
    if how is None and usual <= pd.Timedelta(hours=1) and _are_clock_changes(times):
        how = "mean"
        said = f"({flag('zone')} or {flag('duplicates')} decides otherwise)"
        counts[f"Rows of an hour that the clock showed twice were averaged {said}"] += again.sum()
    elif how in (None, "error"):
        place = int(np.flatnonzero(again)[0])
        first, second = sorted(int(row) + 1 for row in frame[ORDER].iloc[[place - 1, place]])
        raise reading.error(
            f"{label}rows {first} and {second} have the same time, {frame.index[place]} "
            f"({len(times):,} such rows): {flag('duplicates', 'mean')} or "
            f"{flag('duplicates', 'first')} merges them; if there are several series, "
            f"{flag('id')} names their column; {flag('ignore')} leaves the time column out and "
            "takes rows in their order."
        )
    else:
        counts[f"Rows of the same time were merged ({how})"] += again.sum()
    first_rows = frame[~again]
    if how == "first":
        return first_rows
    return frame.groupby(level=0).mean().assign(**{ORDER: first_rows[ORDER]})


def _are_clock_changes(times: pd.DatetimeIndex) -> bool:
    """Whether times are all those of Sunday nights when clocks are changed."""
    nights = (times.dayofweek == 6) & (times.hour < 4) & times.month.isin([3, 4, 9, 10, 11])
    days = pd.Series(times.normalize().unique()).diff().dropna() / pd.Timedelta(days=1)
    return bool(len(times) and nights.all() and (days > 100).all())


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
    days, rest = divmod(usual, pd.Timedelta(days=1))
    if days == 7 and not rest:
        return f"W-{index[0]:%a}".upper(), rows
    return str(to_offset(usual).freqstr) if rest else f"{days if days > 1 else ''}D", rows


def coverage(stamps: pd.DatetimeIndex) -> float:
    """The share of the grid of the commonest step that times, in any order, fill."""
    index = stamps.unique().sort_values()
    if len(index) < FEWEST_ROWS:
        return 1.0
    return len(index) / max(find_step(index)[1], len(index))


def _lay_on_grid(
    frames: dict[str, pd.DataFrame], step: str, reading: Reading, *, insert: bool
) -> tuple[dict[str, pd.DataFrame], str]:
    """Insert the rows that a grid lacks, or only say which; also the usual name of the step."""
    laid: dict[str, pd.DataFrame] = {}
    missing: dict[str, pd.DatetimeIndex] = {}
    total, jitter, longest = 0, 0.0, pd.DatetimeIndex([])
    for label, frame in frames.items():
        grid, moved = _find_grid(frame, label, step, reading)
        jitter = max(jitter, float(np.abs((moved - frame.index).total_seconds()).max()))
        laid[label] = frame.set_axis(moved)
        if len(grid) > len(moved):
            missing[label] = grid.difference(moved)
            full = laid[label].reindex(grid)
            laid[label] = full.assign(**{ORDER: full[ORDER].fillna(-1)})
        total += len(grid)
        longest = max(longest, grid, key=len)
    if jitter:
        where = "were moved there" if insert else f"are left there ({flag('resample')})"
        reading.note(f"Times lay up to {jitter:.3g} s beside their grid and {where}.")
    if missing:
        label = max(missing, key=lambda each: len(missing[each]))
        longer = _propose_step(pd.DatetimeIndex(frames[label].index))
        _say_missing(list(missing.values()), total, step, longer, reading, insert=insert)
    usual = pd.infer_freq(longest) if len(longest) >= FEWEST_ROWS else None
    return (laid if insert else frames), reading.options.frequency or usual or step


def _find_grid(
    frame: pd.DataFrame, label: str, step: str, reading: Reading
) -> tuple[pd.DatetimeIndex, pd.DatetimeIndex]:
    """The grid of a series, and its times there: those a little beside the grid are moved."""
    index = pd.DatetimeIndex(frame.index)
    if len(index) < 2:
        return index, index

    def row(place: int) -> str:
        return f"{index[place]} (row {int(frame[ORDER].iloc[place]) + 1})"

    if (index[-1] - index[0]).total_seconds() / _seconds(step) > FAR_ROWS * len(index) + 1000:
        gap = int(np.argmax(np.diff(index.asi8)))
        far = row(gap + 1 if gap + 1 > len(index) / 2 else gap)
        raise reading.error(
            f"{label}{far} is far from the other times: correct that row, or leave it out."
        )
    grid = pd.date_range(index[0], index[-1], freq=step)
    on_grid = index.isin(grid)
    if on_grid.all():
        return grid, index
    snapped = None if reading.options.frequency else _snap(index)
    if snapped is None:
        raise reading.error(
            f"{label}times are irregular: {int((~on_grid).sum()):,} of {len(index):,} rows are off "
            f"the grid of the commonest step {step} (first {row(int(np.argmin(on_grid)))}): "
            f"{flag('resample', _propose_step(index))} averages rows into even steps; if there are "
            f"several series, {flag('id')} names their column."
        )
    return snapped


def _snap(index: pd.DatetimeIndex) -> tuple[pd.DatetimeIndex, pd.DatetimeIndex] | None:
    """The round grid that times lie close to, and the times moved there."""
    usual = pd.Series(index).diff().dropna().median()
    near = min(ROUND_STEPS, key=lambda step: abs(np.log(_seconds(step) / usual.total_seconds())))
    size = round(_seconds(near) * 1e9)
    if abs(size / usual.value - 1) > NEAR_STEP:
        return None
    nanos = index.as_unit("ns").asi8
    phase = np.median((nanos - nanos[0] + size // 2) % size) - size // 2 + nanos[0] % size
    if abs(phase) < LARGEST_JITTER * size:
        phase = 0
    places = np.round((nanos - phase) / size).astype(np.int64)
    distance = np.abs(nanos - phase - places * size).max()
    if distance > LARGEST_JITTER * size or (np.diff(places) < 1).any():
        return None
    full = np.arange(places[0], places[-1] + 1) * size + int(phase)
    grid = pd.DatetimeIndex(full.view("M8[ns]"))
    return grid, grid[places - places[0]]


def _propose_step(index: pd.DatetimeIndex) -> str:
    """A round step of which nearly all hold a row; of which most do, if that is much shorter."""
    nanos = index.as_unit("ns").asi8
    usual, shares = np.median(np.diff(nanos)), {}
    for step in ROUND_STEPS:
        held = np.unique(nanos // round(_seconds(step) * 1e9))
        shares[step] = len(held) / (held[-1] - held[0] + 1)
    full = next((step for step, share in shares.items() if share > 0.95), ROUND_STEPS[-1])
    if _seconds(full) * 1e9 > LONGEST * usual:
        full = next((step for step, share in shares.items() if share > MOST_INSERTED), full)
    return {"30D": "MS", "7D": "W"}.get(full, full)


def _say_missing(
    missing: list[pd.DatetimeIndex],
    total: int,
    step: str,
    longer: str,
    reading: Reading,
    *,
    insert: bool,
) -> None:
    """Say how many rows a grid lacks; refuse more than half unless the step was asked for."""
    count, first = sum(map(len, missing)), max(missing, key=len)[0]
    said = f"{count:,} of {total:,} rows on the grid of step {step} are missing (first at {first})"
    keeps = f"{flag('frequency', step)} keeps the grid with gaps"
    averages = f"{flag('resample', longer)} averages rows into longer steps"
    asked = reading.options.frequency or reading.options.resample
    if count >= MOST_INSERTED * total and not asked:
        raise reading.error(f"{said}, half of all or more: {averages}, {keeps}.")
    said += " and are gaps" if insert else ""
    if count > MANY_INSERTED * total and not asked:
        said += f"; that is {count / total:.0%} of all: "
        said += averages if _seconds(longer) > _seconds(step) else keeps
    if _seconds(step) <= 3600 and all(map(_are_clock_changes, missing)):
        said += f"; clocks are put forward in such nights: {flag('zone')} names the time zone"
    reading.note(f"{said}.")


def check_frequency(frequency: str | None) -> None:
    """Refuse what pandas does not know as a frequency."""
    try:
        to_offset(frequency)
    except ValueError as error:
        raise ArgumentError(
            f"{frequency!r} is not a frequency: use a pandas alias such as 'h', '15min' or 'MS'."
        ) from error
