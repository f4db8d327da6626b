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
    NumberStyle,
    certain_sign,
    code_note,
    is_text,
    plain_text,
    read_numbers,
    some,
    words_of,
)
from sacm.data.times import COUNTER_NAMES, part_of
from sacm.errors import DataError

LABEL_WORDS = frozenset(
    words_of(
        "label labels anomaly anomalies anomalous isanomaly attack attacks outlier outliers "
        "isoutlier changepoint changepoints fault faulty isattack isfault groundtruth "
        "intrusion"
    )
)
NORMAL_WORDS = ("normal", "benign", "ok", "no", "false", "healthy", "0", "0.0")
RESTARTS = 0.9  # share of steps by one that make a column a counter
CALENDAR = ("year", "quarter", "month", "day", "dayofyear", "dayofweek", "hour", "minute", "second")
CALENDAR_NAMES = {"weekday": "dayofweek", "dow": "dayofweek", "doy": "dayofyear"}


@dataclass
class Channels:
    """The columns of a table that are numbers.

    Attributes:
        names: Names of the C channels.
        values: `[T, C]` float64, NaN where nothing was measured.
        label: The column of labels.
        labels: `[T]` float64.
        categories: Channels of 0 and 1 that were made of words.
        left_out: Columns that are no channels, by reason.
        notes: What was understood.
    """

    names: list[str] = field(default_factory=list)
    values: list[np.ndarray] = field(default_factory=list)
    label: str | None = None
    labels: np.ndarray | None = None
    categories: list[str] = field(default_factory=list)
    left_out: dict[str, list[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def leave_out(self, name: str, reason: str) -> None:
        """Note a column that is no channel."""
        self.left_out.setdefault(reason, []).append(name)


def read_channels(
    frame: pd.DataFrame,
    where: str,
    style: NumberStyle,
    *,
    times: Times | None,
    columns: Sequence[str] | None,
    label: str | None,
    category: Sequence[str] = (),
    also: Sequence[str] = (),
    labelled: bool = False,
) -> Channels:
    """Read the channels of a table: those asked for, or all columns that are nothing else.

    Args:
        frame: The table without its times and ids.
        where: What errors call the table.
        style: How its numbers are written.
        times: Its times; columns that only repeat the calendar are left out.
        columns: The channels, if the user names them.
        label: The column of labels, if the user names it.
        category: Columns of words that become channels of 0 and 1.
        also: Columns that are wanted besides the channels, whatever they look like.
        labelled: Whether labels are usual, so that no note names a column called label.

    Raises:
        DataError: A column asked for holds no numbers, or none is left.
    """
    found = Channels(label=label)
    style.signs |= {
        sign
        for name in frame.columns[:200]
        if is_text(frame[name])
        for sign in [certain_sign(frame[name])]
        if sign
    }
    asked = {*(columns or ()), *also}
    made = [name for name in asked if name.partition("=")[0] in category]
    asked -= set(made)
    calendar = _calendar(times)
    for name in frame.columns:
        column = frame[name]
        if name in category or name == label:
            continue
        if columns is not None and name not in asked:
            if found.label is None and _is_label(column):
                found.label = name
            else:
                found.leave_out(name, "not asked for")
            continue
        values = None
        if name not in asked:
            reason = _no_channel(column, found, times)
            if reason is not None:
                found.leave_out(name, reason)
                continue
            if name == found.label:
                continue
        values = read_numbers(column, where, style, found.notes)
        if values is None and name in asked:
            raise DataError(
                f"{where}: column {name!r} holds words such as {_first(column)!r}, no numbers: "
                f"category={name!r} (--category) makes inputs of 0 and 1 of it."
            )
        if values is None:
            found.leave_out(name, _words_reason(column))
        elif np.isnan(values).all() and name not in asked:
            found.leave_out(name, "no value")
        elif name not in asked and _repeats_calendar(name, values, calendar):
            found.leave_out(name, "only repeats the calendar")
        else:
            if times is None and name not in asked:
                _check_restarts(values, name, where)
            found.names.append(name)
            found.values.append(values)
            note = code_note(name, values)
            found.notes += [note] if note else []
    if found.label is not None:
        found.labels = read_labels(frame[found.label], where, found.notes, asked=label is not None)
        if label is None and not (labelled and _plain(found.label) in ("label", "labels")):
            found.notes.append(
                f"Column {found.label!r} was taken as labels, not as a channel: label= names "
                "another column, columns= takes it as a channel."
            )
    _add_categories(found, frame, category, made, where)
    if columns is not None:
        _put_in_order(found, [*columns, *(name for name in also if name not in columns)])
    _keep_some(found, frame, where, style)
    return found


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", str(name).lower())


def _first(column: pd.Series) -> str:
    return str(column.dropna().iloc[0]) if column.notna().any() else ""


def _words_reason(column: pd.Series) -> str:
    few = 1 < column.nunique() <= MOST_CLASSES if not _holds_objects(column) else False
    return "words (category= makes inputs of it)" if few else "words"


def _holds_objects(column: pd.Series) -> bool:
    return bool(column.map(lambda cell: isinstance(cell, list | dict | np.ndarray)).any())


def _no_channel(column: pd.Series, found: Channels, times: Times | None) -> str | None:
    """Why a column is no channel by its name; a column of labels is kept in `found`."""
    name = str(column.name)
    if _is_label(column):
        if found.label is None:
            found.label = name
            return None
        return "looks like labels"
    if _plain(name) in COUNTER_NAMES and _counts(column):
        return "counts the rows"
    return None


def _is_label(column: pd.Series) -> bool:
    """Whether name and values of a column are those of labels."""
    name = str(column.name)
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    words = {*re.split(r"[^a-z0-9]+", spaced.lower()), _plain(name)}
    if words.isdisjoint(LABEL_WORDS) or _holds_objects(column):
        return False
    count = column.nunique()
    whole = is_text(column) or bool((column.dropna() % 1 == 0).all())
    return count <= 2 or (count <= MOST_CLASSES and whole)


def _counts(column: pd.Series) -> bool:
    """Whether numbers rise by the same step in every row."""
    if is_text(column) or column.dtype.kind not in "iuf":
        return False
    steps = np.diff(column.to_numpy(np.float64, na_value=np.nan))
    if len(steps) < 2 or not np.isfinite(steps).all() or not (steps > 0).all():
        return False
    return bool(np.allclose(steps, np.median(steps), rtol=1e-3))


def _check_restarts(values: np.ndarray, name: str, where: str) -> None:
    """Refuse a column that counts rows and begins anew: it tells series apart, or time."""
    steps = np.diff(values)
    if len(steps) < 10 or not RESTARTS < (steps == 1).mean() < 1:
        return
    if len(np.unique(values[1:][steps != 1])) == 1:
        raise DataError(
            f"{where}: column {name!r} counts rows and begins anew: leave it out with "
            f"ignore={name!r} (--ignore), or take it as a channel with columns= (--columns)."
        )


def _calendar(times: Times | None) -> list[np.ndarray]:
    """Parts of the calendar of all rows, as columns may hold them."""
    if times is None or times.stamps is None:
        return []
    index = times.stamps
    if times.zone is not None and not times.local:
        index = index.tz_localize("UTC").tz_convert(times.zone).tz_localize(None)
    parts = [np.asarray(getattr(index, name), np.float64) for name in CALENDAR]
    weeks = index.isocalendar()["week"].to_numpy(np.float64)
    found = [*parts, parts[CALENDAR.index("dayofweek")] + 1, weeks]
    return [part for part in found if len(part) > 2]


def _repeats_calendar(name: str, values: np.ndarray, calendar: list[np.ndarray]) -> bool:
    """Whether a column is a part of the calendar; a constant one only if its name says so."""
    named = part_of(name) is not None or _plain(name) in (*CALENDAR, *CALENDAR_NAMES)
    return any(
        values[0] == part[0] and np.array_equal(values, part) and (named or part.min() < part.max())
        for part in calendar
    )


def _add_categories(
    found: Channels,
    frame: pd.DataFrame,
    category: Sequence[str],
    wanted: Sequence[str],
    where: str,
) -> None:
    """Channels of 0 and 1 for the words of some columns."""
    for name in category:
        words = plain_text(frame[name])
        kinds = sorted(set(words) - {""})
        if len(kinds) > MOST_CLASSES:
            raise DataError(
                f"{where}: column {name!r} has {len(kinds)} different words, more than the "
                f"{MOST_CLASSES} of a category: leave it out with ignore={name!r} (--ignore)."
            )
        made = [each for each in wanted if each.partition("=")[0] == name]
        for each in made or [f"{name}={kind}" for kind in kinds]:
            kind = each.partition("=")[2]
            values = (words == kind).to_numpy(np.float64)
            found.names.append(each)
            found.values.append(np.where(words == "", np.nan, values))
            found.categories.append(each)


def _put_in_order(found: Channels, wanted: list[str]) -> None:
    """Channels in the order that was asked for."""
    made = [name for name in found.names if name not in wanted]
    places = [found.names.index(name) for name in [*wanted, *made] if name in found.names]
    found.names = [found.names[place] for place in places]
    found.values = [found.values[place] for place in places]


def _keep_some(found: Channels, frame: pd.DataFrame, where: str, style: NumberStyle) -> None:
    """Take counters and calendar columns as channels if nothing else is there; say what is not."""
    weak = ("counts the rows", "only repeats the calendar")
    if not found.names:
        for reason in weak:
            for name in found.left_out.pop(reason, []):
                values = read_numbers(frame[name], where, style, found.notes)
                if values is not None:
                    found.names.append(name)
                    found.values.append(values)
    if not found.names:
        reasons = "; ".join(f"{reason}: {some(names)}" for reason, names in found.left_out.items())
        raise DataError(f"{where} has no column of values" + (f" ({reasons})." if reasons else "."))
    for reason, names in found.left_out.items():
        if reason not in ("not asked for", "not wanted"):
            quoted = some([repr(name) for name in names])
            found.notes.append(f"Left out, {reason}: {quoted} (columns= takes it in).")


def read_labels(
    column: pd.Series, where: str, notes: list[str], *, asked: bool
) -> np.ndarray | None:
    """Labels as float64 `[T]`; of two words of which one is the normal state, the other is 1.

    None if a column that the user did not name holds other words.
    """
    if not is_text(column):
        return column.to_numpy(np.float64, na_value=np.nan)
    words = plain_text(column).str.lower()
    normal = words.isin(NORMAL_WORDS)
    numbers = pd.to_numeric(words, errors="coerce")
    if numbers.notna().all():
        return numbers.to_numpy(np.float64)
    kinds = some([repr(word) for word in column.dropna().unique()[:2]])
    if (words != "").all() and normal.any() and words[~normal].nunique() <= 1:
        if not normal.all():
            pair = [repr(str(part.iloc[0])) for part in (column[~normal], column[normal])]
            notes.append(
                f"Labels in column {column.name!r}: {pair[0]} is an anomaly, {pair[1]} is not."
            )
        return (~normal).to_numpy(np.float64)
    sentence = (
        f"the labels in column {column.name!r} are words ({kinds}), of which none says what is "
        "normal: write 1 for anomalies and 0 for the rest."
    )
    if asked:
        raise DataError(f"{where}: {sentence}")
    notes.append(sentence[0].upper() + sentence[1:])
    return None
