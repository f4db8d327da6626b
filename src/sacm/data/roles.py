"""Which columns are channels: labels, counters, calendar columns and words are not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from sacm.data.dates import Times
from sacm.data.numbers import (
    MOST_CLASSES,
    Reading,
    certain_signs,
    flag,
    is_text,
    plain_name,
    plain_text,
    propose_gap_code,
    read_numbers,
    some,
    words_of,
)
from sacm.data.times import COUNTER_NAMES, part_of
from sacm.errors import DataError

LABEL_WORDS = frozenset(
    words_of(
        "label labels anomaly anomalies anomalous isanomaly attack attacks outlier outliers "
        "isoutlier changepoint changepoints fault faulty isattack isfault groundtruth intrusion"
    )
)
NORMAL_WORDS = ("normal", "benign", "ok", "no", "false", "healthy", "0", "0.0")
RESTARTS = 0.9  # share of steps by one that make a column a counter
CALENDAR = ("year", "quarter", "month", "day", "dayofyear", "dayofweek", "hour", "minute", "second")
COUNTS, REPEATS, NO_VALUE = "counts the rows", "only repeats the calendar", "no value"
NOT_ASKED = "not asked for"


@dataclass
class Channels:
    """The columns of a table that are numbers.

    Attributes:
        names: Names of the C channels.
        values: `[T]` float64 of each, NaN where nothing was measured.
        label: The column of labels.
        labels: `[T]` float64.
        categories: Channels of 0 and 1 that were made of words.
        left_out: Columns that are no channels, by reason.
    """

    names: list[str] = field(default_factory=list)
    values: list[np.ndarray] = field(default_factory=list)
    label: str | None = None
    labels: np.ndarray | None = None
    categories: list[str] = field(default_factory=list)
    left_out: dict[str, list[str]] = field(default_factory=dict)

    def add(self, name: str, values: np.ndarray) -> None:
        """Take a column as a channel."""
        self.names.append(name)
        self.values.append(values)

    def leave_out(self, name: str, reason: str) -> None:
        """Note a column that is no channel."""
        self.left_out.setdefault(reason, []).append(name)


def read_channels(
    frame: pd.DataFrame,
    reading: Reading,
    *,
    times: Times | None,
    columns: Sequence[str] | None,
    also: Sequence[str] = (),
    labelled: bool = False,
) -> Channels:
    """Read the channels of a table: those asked for, or all columns that are nothing else.

    Args:
        frame: The table without its times and ids.
        reading: The options `label` and `category` are used; takes notes.
        times: Its times; columns that only repeat the calendar are left out.
        columns: The channels, if they are known.
        also: Columns that are wanted besides the channels, whatever they look like.
        labelled: Whether labels are usual, so that no note names a column called label.

    Raises:
        DataError: A column asked for holds no numbers, or none is left.
    """
    label, category = reading.options.label, reading.options.category or ()
    found = Channels(label=label)
    for name in frame.columns[:200]:
        reading.signs |= certain_signs(frame[name])
    asked = {*(columns or ()), *also}
    made = [name for name in asked if name.partition("=")[0] in category]
    asked -= set(made)
    calendar = _calendar(times)
    for name in frame.columns:
        column = frame[name]
        if name in category or name == label:
            continue
        if name in asked:
            values = read_numbers(column, reading)
            if values is None:
                raise reading.error(
                    f"column {name!r} holds words such as {column.dropna().iloc[0]!r}, no numbers: "
                    f"{flag('category', name)} makes inputs of 0 and 1 of it."
                )
            found.add(name, values)
        elif _is_label(column):
            if found.label is None:
                found.label = name
            else:
                found.leave_out(name, "looks like labels")
        elif columns is not None:
            found.leave_out(name, NOT_ASKED)
        else:
            _add_if_channel(column, found, calendar, reading, timed=times is not None)
    if found.label is not None:
        found.labels = _read_labels(frame[found.label], reading, asked=label is not None)
        if label is None and not (labelled and plain_name(found.label) in ("label", "labels")):
            reading.note(
                f"Column {found.label!r} was taken as labels, not as a channel: {flag('label')} "
                f"names another column, {flag('columns')} takes it as a channel."
            )
    for name in category:
        _add_category(frame[name], found, made, reading)
    if columns is not None:
        wanted = [*columns, *(name for name in also if name not in columns)]
        rest = [name for name in found.names if name not in wanted]
        places = [found.names.index(name) for name in [*wanted, *rest] if name in found.names]
        found.names = [found.names[place] for place in places]
        found.values = [found.values[place] for place in places]
    _keep_some(found, frame, reading)
    return found


def _add_if_channel(
    column: pd.Series,
    found: Channels,
    calendar: list[np.ndarray],
    reading: Reading,
    *,
    timed: bool,
) -> None:
    """Take a column that nobody asked for as a channel, or say why not."""
    name = str(column.name)
    if plain_name(name) in COUNTER_NAMES and _counts(column):
        found.leave_out(name, COUNTS)
        return
    values = read_numbers(column, reading)
    if values is None:
        few = not _holds_objects(column) and 1 < column.nunique() <= MOST_CLASSES
        found.leave_out(name, f"words ({flag('category')} makes inputs of it)" if few else "words")
    elif np.isnan(values).all():
        found.leave_out(name, NO_VALUE)
    elif _repeats_calendar(name, values, calendar):
        found.leave_out(name, REPEATS)
    else:
        if not timed:
            _check_restarts(values, name, reading)
        found.add(name, values)
        propose_gap_code(name, values, reading)


def _holds_objects(column: pd.Series) -> bool:
    return bool(column.map(lambda cell: isinstance(cell, list | dict | np.ndarray)).any())


def _is_label(column: pd.Series) -> bool:
    """Whether name and values of a column are those of labels."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", str(column.name))
    words = {*re.split(r"[^a-z0-9]+", spaced.lower()), plain_name(column.name)}
    if words.isdisjoint(LABEL_WORDS) or _holds_objects(column):
        return False
    count = column.nunique()
    whole = is_text(column) or bool((column.dropna() % 1 == 0).all())
    return count <= 2 or (count <= MOST_CLASSES and whole)


def _counts(column: pd.Series) -> bool:
    """Whether numbers rise by the same step in every row."""
    numbers = pd.to_numeric(column, errors="coerce") if is_text(column) else column
    if numbers.dtype.kind not in "iuf":
        return False
    steps = np.diff(numbers.to_numpy(np.float64, na_value=np.nan))
    return bool(len(steps) > 1 and (steps > 0).all() and np.allclose(steps, steps[0], rtol=1e-3))


def _check_restarts(values: np.ndarray, name: str, reading: Reading) -> None:
    """Refuse a column that counts rows and begins anew: it tells series apart, or time."""
    steps = np.diff(values)
    if len(steps) < 10 or not RESTARTS < (steps == 1).mean() < 1:
        return
    if len(np.unique(values[1:][steps != 1])) == 1:
        raise reading.error(
            f"column {name!r} counts rows and begins anew: leave it out with "
            f"{flag('ignore', name)}, or take it as a channel with {flag('columns')}."
        )


def _calendar(times: Times | None) -> list[np.ndarray]:
    """Parts of the calendar of all rows, as columns may hold them."""
    if times is None or times.stamps is None or len(times.stamps) < 3:
        return []
    index = times.stamps
    if times.zone is not None and not times.local:
        index = index.tz_localize("UTC").tz_convert(times.zone).tz_localize(None)
    parts = {name: np.asarray(getattr(index, name), np.float64) for name in CALENDAR}
    weeks = index.isocalendar()["week"].to_numpy(np.float64)
    return [*parts.values(), parts["dayofweek"] + 1, (parts["dayofweek"] + 1) % 7, weeks]


def _repeats_calendar(name: str, values: np.ndarray, calendar: list[np.ndarray]) -> bool:
    """Whether a column is a part of the calendar; a constant one only if its name says so."""
    named = part_of(name) is not None or plain_name(name) in (*CALENDAR, "weekday", "dow")
    return any(
        values[0] == part[0] and np.array_equal(values, part) and (named or part.min() < part.max())
        for part in calendar
    )


def _add_category(
    column: pd.Series, found: Channels, wanted: Sequence[str], reading: Reading
) -> None:
    """Channels of 0 and 1 for the words of a column."""
    name, words = str(column.name), plain_text(column)
    kinds = sorted(set(words) - {""})
    if len(kinds) > MOST_CLASSES:
        raise reading.error(
            f"column {name!r} has {len(kinds)} different words, more than the {MOST_CLASSES} of a "
            f"category: leave it out with {flag('ignore', name)}."
        )
    made = [each for each in wanted if each.partition("=")[0] == name]
    for each in made or [f"{name}={kind}" for kind in kinds]:
        values = (words == each.partition("=")[2]).to_numpy(np.float64)
        found.add(each, np.where(words == "", np.nan, values))
        found.categories.append(each)


def _keep_some(found: Channels, frame: pd.DataFrame, reading: Reading) -> None:
    """Take counters and calendar columns as channels if nothing else is there; say what is not."""
    for reason in (COUNTS, REPEATS) if not found.names else ():
        for name in found.left_out.pop(reason, []):
            values = read_numbers(frame[name], reading)
            if values is not None:
                found.add(name, values)
    if not found.names:
        reasons = "; ".join(f"{reason}: {some(names)}" for reason, names in found.left_out.items())
        said = f" ({reasons})" if reasons else ""
        raise DataError(f"{reading.where} has no column of values{said}.")
    for reason, names in found.left_out.items():
        if reason != NOT_ASKED:
            quoted = some([repr(name) for name in names])
            reading.note(f"Left out, {reason}: {quoted} ({flag('columns')} takes it in).")


def _read_labels(column: pd.Series, reading: Reading, *, asked: bool) -> np.ndarray | None:
    """Labels as float64 `[T]`; of two words of which one is the normal state, the other is 1.

    None if a column that the user did not name holds other words.
    """
    words = plain_text(column).str.lower()
    numbers = pd.to_numeric(words, errors="coerce") if is_text(column) else column.astype(float)
    if numbers.notna().all() or not is_text(column):
        return numbers.to_numpy(np.float64)
    normal = words.isin(NORMAL_WORDS)
    if (words != "").all() and normal.any() and words[~normal].nunique() <= 1:
        if not normal.all():
            bad, good = (repr(str(part.iloc[0])) for part in (column[~normal], column[normal]))
            reading.note(f"Labels in column {column.name!r}: {bad} is an anomaly, {good} is not.")
        return (~normal).to_numpy(np.float64)
    kinds = some([repr(word) for word in column.dropna().unique()[:2]])
    sentence = (
        f"the labels in column {column.name!r} are words ({kinds}), of which none says what is "
        "normal: write 1 for anomalies and 0 for the rest."
    )
    if asked:
        raise reading.error(sentence)
    reading.note(sentence[0].upper() + sentence[1:])
    return None
