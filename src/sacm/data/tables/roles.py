"""Which columns are channels: labels, counters and places in the calendar are not, and it is said.

A column that is left out is named in a note together with the option that takes it in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sacm.data.tables.columns import check_present, choose_columns, numbers
from sacm.data.tables.date_numbers import find_style
from sacm.data.tables.names import (
    calendar_part,
    is_counter,
    is_label_name,
    plain_name,
    read_whole_numbers,
    rises_by_one,
)
from sacm.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

MOST_CLASSES = 20
NORMAL_WORDS = ("normal", "benign", "ok", "no", "false", "healthy", "0", "0.0")
REASONS = {
    "label": "looks like labels",
    "counter": "counts the rows",
    "calendar": "only repeats the calendar",
}


class LeftOut(NamedTuple):
    """A column that is no channel, and why."""

    name: str
    reason: str


class Roles(NamedTuple):
    """The column of labels if there is one, columns left out, and notes on both."""

    label: str | None
    left_out: tuple[LeftOut, ...]
    notes: tuple[str, ...]


class Picked(NamedTuple):
    """The channels of a table, its labels, and what was left out."""

    channels: pd.DataFrame
    label: str | None
    labels: np.ndarray | None  # [T] float64
    left_out: tuple[LeftOut, ...]
    notes: tuple[str, ...]


def pick_channels(
    frame: pd.DataFrame,
    stamps: np.ndarray | None,
    columns: Sequence[str] | None,
    label: str | None,
    where: str,
    *,
    labelled: bool = False,
    also: Sequence[str] = (),
) -> Picked:
    """Pick the channels of a table: those asked for, or all columns that are nothing else.

    Args:
        frame: The table without its time.
        stamps: The times of its rows `[T]`, None if it has no dates.
        columns: The channels, if the user names them; then nothing is guessed about the others.
        label: The column of labels, if the user names it.
        where: What errors call the table.
        labelled: Whether labels are usual, so that no note names a column called label.
        also: Columns that are wanted besides the channels, whatever they look like.

    Returns:
        Channels and labels in the order of the table.

    Raises:
        DataError: A column asked for is not there, or labels are no numbers.
    """
    check_present(frame, list(also), where)
    asked = {*(columns or ()), *also} - {label}
    others = frame[[name for name in frame.columns if name not in asked]]
    roles = find_roles(others, stamps, label, where, labelled=labelled)
    labels = None
    if roles.label is not None:
        labels = label_values(frame[roles.label], where, asked=label is not None)
        roles = roles._replace(notes=(*roles.notes, *word_notes(frame[roles.label], labels)))
    if columns is not None:
        more = [name for name in also if name not in columns]
        channels = choose_columns(frame, [*columns, *more], where)
        rest = tuple(LeftOut(str(name), "not asked for") for name in others if name != roles.label)
        said = () if roles.label is None else word_notes(frame[roles.label], labels)
        return Picked(channels, roles.label, labels, rest, said)
    out = {roles.label, *(one.name for one in roles.left_out)}
    channels = frame[[name for name in frame.columns if name not in out]]
    return Picked(channels, roles.label, labels, roles.left_out, roles.notes)


def find_roles(
    frame: pd.DataFrame,
    stamps: np.ndarray | None,
    label: str | None,
    where: str,
    *,
    labelled: bool = False,
) -> Roles:
    """Tell columns that are no channels from those that are.

    Args:
        frame: The table without its time.
        stamps: The times of its rows `[T]`, None if it has no dates.
        label: The column of labels, if the user names it.
        where: What errors call the table.
        labelled: Whether labels are usual, so that no note names a column called label.

    Returns:
        Labels, and what is to be left out. Never everything: the last columns stay channels.

    Raises:
        DataError: There is no column `label`.
    """
    if label is not None:
        check_present(frame, [label], where)
    found: dict[str, str] = {}
    for name in frame.columns:
        role = role_of(frame[name], stamps) if name != label else None
        if role is not None:
            found[str(name)] = role
    labels = [name for name, role in found.items() if role == "label"]
    chosen = label or (labels[0] if labels else None)
    if len(found) + (label is not None) == len(frame.columns):
        found = {name: role for name, role in found.items() if role == "label"}
    left = tuple(LeftOut(name, REASONS[role]) for name, role in found.items() if name != chosen)
    usual = labelled and plain_name(chosen) in ("label", "labels")
    notes = [] if label is not None or chosen is None or usual else [label_note(chosen)]
    notes += left_notes(left) + doubt_notes(frame, stamps, {chosen, *found})
    return Roles(chosen, left, tuple(notes))


def role_of(column: pd.Series, stamps: np.ndarray | None) -> str | None:
    """What a column is if it is no channel."""
    if is_label_name(str(column.name)):
        return "label" if has_few_classes(column) else None
    if is_counter(column):
        return "counter"
    if calendar_part(column) is not None and repeats_calendar(column, stamps):
        return "calendar"
    if plain_name(column.name) in ("month", "period", "quarter", "day", "date"):
        values = read_whole_numbers(column)  # such as 202401
        return "calendar" if values is not None and find_style(values) is not None else None
    return None


def has_few_classes(column: pd.Series) -> bool:
    """Whether a column takes as few values as labels do."""
    count = column.nunique()
    whole = read_whole_numbers(column) is not None
    return bool(count <= 2 or (count <= MOST_CLASSES and (whole or column.dtype == object)))


def repeats_calendar(column: pd.Series, stamps: np.ndarray | None) -> bool:
    """Whether a part of the calendar follows from the times; without any, nobody can tell."""
    import pandas as pd

    values = read_whole_numbers(column)
    if stamps is None or values is None:
        return True
    part = {"dow": "dayofweek", "week": "weekofyear"}.get(str(calendar_part(column)))
    index = pd.DatetimeIndex(stamps)
    part = part or str(calendar_part(column))
    own = index.isocalendar()["week"] if part == "weekofyear" else getattr(index, part)
    # Days of the week are counted from 0 or from 1.
    return len(np.unique(values - np.asarray(own, dtype=np.int64))) == 1


def label_note(name: str) -> str:
    """Say which column was taken as labels."""
    return (
        f"Column {name!r} was taken as labels, not as a channel: label= names another column, "
        f"columns= takes it as a channel."
    )


def left_notes(left: tuple[LeftOut, ...]) -> list[str]:
    """Say what was left out, a sentence for each reason."""
    notes = []
    for reason in dict.fromkeys(one.reason for one in left):
        names = [repr(one.name) for one in left if one.reason == reason]
        listed = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        notes.append(f"Left out because it {reason}: {listed} (columns= takes it as a channel).")
    return notes


def doubt_notes(
    frame: pd.DataFrame, stamps: np.ndarray | None, known: set[str | None]
) -> list[str]:
    """Say which channels may be none."""
    notes = []
    first = str(frame.columns[0]) if len(frame.columns) > 1 else None
    for name in (str(name) for name in frame.columns if name not in known):
        if is_label_name(name):
            notes.append(
                f"Column {name!r} has the name of labels but many values: it was taken as a "
                f"channel (ignore= leaves it out)."
            )
        elif calendar_part(frame[name]) is not None:
            notes.append(f"Column {name!r} was taken as a channel (ignore= leaves it out).")
        elif name == first and stamps is None and rises_by_one(frame[name]):
            notes.append(
                f"Column {name!r} rises by one in every row and was taken as a channel: is it the "
                f"time? time={name!r} says so, ignore= leaves it out."
            )
    return notes


def label_values(column: pd.Series, where: str, *, asked: bool) -> np.ndarray | None:
    """Labels as float64 `[T]`; of two words that name the normal state, the other is 1.

    None if a column that the user did not name holds no numbers.
    """
    import pandas as pd

    if not pd.api.types.is_numeric_dtype(column):
        words = column.astype(str).str.strip().str.lower()
        normal = words.isin(NORMAL_WORDS)
        if column.notna().all() and normal.any() and words[~normal].nunique() <= 1:
            return (~normal).to_numpy(dtype=np.float64)
        if not asked:
            return None
        if column.nunique() == 2 and pd.to_numeric(column, errors="coerce").isna().all():
            raise DataError(
                f"{where}: the labels in column {column.name!r} are words ({_two_words(column)}), "
                "of which none says what is normal: write 1 for anomalies and 0 for the rest."
            )
    return numbers(column, where)


def word_notes(column: pd.Series, labels: np.ndarray | None) -> tuple[str, ...]:
    """Say which of two words was taken for an anomaly; nothing of labels that are numbers."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):
        return ()
    if labels is None:
        return (
            f"Column {column.name!r} holds words ({_two_words(column)} …) of which none says what "
            "is normal, so they measure nothing: write 1 for anomalies and 0 for the rest.",
        )
    known = [
        repr(str(own.iloc[0])) for own in (column[labels > 0], column[labels == 0]) if len(own)
    ]
    if len(known) < 2 or not labels.any():
        return ()
    return (f"Labels in column {column.name!r}: {known[0]} is an anomaly, {known[1]} is not.",)


def _two_words(column: pd.Series) -> str:
    return ", ".join(repr(str(word)) for word in column.dropna().unique()[:2])
