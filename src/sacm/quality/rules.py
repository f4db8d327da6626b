"""What an engineer knows about the channels: limits, codes, maintenance, events to keep.

A rules file names channels (or a pattern such as `temp_*`, or `all`) and what holds for them::

    all:
      longest_gap: 6 h
    temperature:
      range: [-5, 40]
      max_change: 2/min
      codes: [-9999]

A rule is obeyed exactly; the event says which rule it was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from math import inf
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np

from sacm.errors import ArgumentError
from sacm.quality.config import CODE, KINDS, RULE, STUCK
from sacm.quality.predictor import Array, Rows, find_segments, list_names

ALL = "all"
RULES = ("", "range", "max_change", "codes", "longest_rest", "maintenance")
"""Names of the rules that flag values."""
RANGE, MAX_CHANGE, CODES, LONGEST_REST, MAINTENANCE = range(1, len(RULES))
RULE_KINDS = (0, RULE, RULE, CODE, STUCK, RULE)
"""The flag of what breaks each of them."""
KEYS = (*RULES[1:], "longest_gap", "leave_alone", "kinds")
UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_AMOUNT = re.compile(r"\s*([-+]?\d+\.?\d*(?:[eE][-+]?\d+)?)\s*(/?)\s*(rows?|s|min|h|d)\s*")
_YES, _NO = ("1", "yes", "y", "true", "x", "keep"), ("", "0", "no", "n", "false")
Refuse = Callable[[str], NoReturn]


class Amount(NamedTuple):
    """A span such as 6 h, or a rate such as 2/min; `seconds` is None for one by rows."""

    value: float
    seconds: float | None
    text: str

    def by_row(self, step: float | None, rule: str) -> float:
        """A span in rows that are `step` seconds apart, or a rate by such a row."""
        if self.seconds is None:
            return self.value
        if not step:
            raise ArgumentError(
                f"{rule}: {self.text!r} is by time, but the rows have no times: write it by rows."
            )
        rows = self.seconds / step
        return self.value / rows if "/" in self.text else self.value * rows


class Interval(NamedTuple):
    """First and last row, by number or by time."""

    first: Any
    last: Any

    def holds(self, times: Array | None, numbers: Array) -> Array:
        """Which rows `[T]` lie in it."""
        rows = numbers if isinstance(self.first, int) else times
        assert rows is not None  # callers check it
        inside: Array = (rows >= self.first) & (rows <= self.last)
        return inside


class Kept(NamedTuple):
    """An event that stays as measured: its channel, rows and times, where there are times."""

    channel: str
    rows: Interval
    times: Interval | None


@dataclass(frozen=True)
class ChannelRules:
    """What holds for one channel; None or empty where nothing was said."""

    range: tuple[float, float] | None = None
    max_change: Amount | None = None
    codes: tuple[float, ...] = ()
    longest_rest: Amount | None = None
    longest_gap: Amount | None = None
    leave_alone: bool = False
    maintenance: tuple[Interval, ...] = ()
    kinds: tuple[str, ...] = KINDS[1:]


@dataclass(frozen=True)
class Rules:
    """Rules as they were written, by pattern, and events to keep.

    Attributes:
        written: The rules of each pattern, as in a file.
        kept: Events that stay as measured.
        source: What errors call them.
        lines: The line of each pattern and of each of its rules.
    """

    written: dict[str, dict[str, Any]] = field(default_factory=dict)
    kept: tuple[Kept, ...] = ()
    source: str = "rules"
    lines: dict[tuple[str, ...], int] = field(default_factory=dict)

    @classmethod
    def read(cls, rules: Any = None, keep: Any = None) -> Self:
        """Rules of a file, a dict or a `Rules`; and a table of events with a column `keep`.

        Raises:
            ArgumentError: They cannot be read; the sentence names line and key.
        """
        kept = () if keep is None else read_kept(keep)
        if isinstance(rules, cls):
            return replace(rules, kept=rules.kept + kept)
        written, source = {} if rules is None else rules, "rules"
        lines: dict[tuple[str, ...], int] = {}
        if isinstance(rules, str | Path):
            (written, lines), source = _read_yaml(Path(rules)), str(rules)
        elif not isinstance(written, Mapping):
            raise ArgumentError(f"rules must be a file or a dict, got {type(rules).__name__}.")
        made = cls({str(key): value for key, value in written.items()}, kept, source, lines)
        for pattern, content in made.written.items():
            if content is None:
                made._refuse("has no rule: write one below, or delete it", pattern)
            if not isinstance(content, Mapping):
                made._refuse(f"holds {content!r}, not rules such as range", pattern)
            made._parse(pattern)
        return made

    def _refuse(self, why: str, *key: str) -> NoReturn:
        line = self.lines.get(key, self.lines.get(key[:1]))
        where = f"{self.source}, line {line}" if line else self.source
        raise ArgumentError(f"{where}: {'.'.join(key)} {why}.")

    def _parse(self, pattern: str) -> dict[str, Any]:
        """The rules of a pattern as `ChannelRules` holds them."""
        result = {}
        for key, value in self.written[pattern].items():

            def refuse(why: str, key: str = str(key)) -> NoReturn:
                self._refuse(why, pattern, key)

            if key not in KEYS:
                refuse(f"is no rule; rules are {', '.join(KEYS)}")
            result[key] = _READERS[key](value, refuse)
        return result

    def of_channels(self, columns: Sequence[str]) -> list[ChannelRules]:
        """The rules of each channel: those for all, then of patterns, then of its own name.

        Raises:
            ArgumentError: A name matches no channel.
        """
        merged: list[dict[str, Any]] = [{} for _ in columns]
        for pattern in sorted(self.written, key=lambda p: (p != ALL, p in columns)):
            matched = [c for c, name in enumerate(columns) if fnmatchcase(name, pattern)]
            if not matched and pattern != ALL:
                self._refuse(f"matches no channel; channels are {list_names(columns)}", pattern)
            for channel in range(len(columns)) if pattern == ALL else matched:
                merged[channel] |= self._parse(pattern)
        return [ChannelRules(**rules) for rules in merged]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a saved guard."""

        def plain(value: Any) -> Any:
            if isinstance(value, list | tuple):
                return [plain(each) for each in value]
            return value if isinstance(value, int | float | None) else str(value)

        written = {p: {k: plain(v) for k, v in own.items()} for p, own in self.written.items()}
        kept = [[k.channel, *map(int, k.rows), *map(str, k.times or ())] for k in self.kept]
        return {"rules": written, "kept": kept}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        """The rules that `to_dict` described."""
        kept = []
        for channel, first, last, *times in record["kept"]:
            span = Interval(*map(np.datetime64, times)) if times else None
            kept.append(Kept(channel, Interval(first, last), span))
        return cls(cls.read(record["rules"]).written, tuple(kept))


def _read_yaml(path: Path) -> tuple[dict[str, Any], dict[Any, int]]:
    """Content of a rules file, and the line of each key."""
    import yaml

    def refuse(mark: Any, why: str) -> NoReturn:
        where = f"{path}, line {mark.line + 1}" if mark else f"{path}"
        raise ArgumentError(f"{where}{why}.")

    content: dict[str, Any] = {}
    lines: dict[Any, int] = {}
    try:
        loader = yaml.SafeLoader(path.read_text(encoding="utf-8"))
        node = loader.get_single_node()
        if node is not None and not isinstance(node, yaml.MappingNode):
            why = "rules begin with a channel or 'all', such as 'temperature:', and its rules below"
            refuse(node.start_mark, f": {why}")
        for key, value in node.value if node is not None else ():
            if (key.value,) in lines:
                refuse(key.start_mark, f": {key.value} is written twice")
            lines[key.value,] = key.start_mark.line + 1
            for inner, _ in value.value if isinstance(value, yaml.MappingNode) else ():
                if (key.value, inner.value) in lines:
                    refuse(inner.start_mark, f", {key.value}: {inner.value} is written twice")
                lines[key.value, inner.value] = inner.start_mark.line + 1
            content[str(key.value)] = loader.construct_object(value, deep=True)
    except OSError as error:
        refuse(None, f" cannot be read: {error.strerror or 'it cannot be read'}")
    except UnicodeDecodeError:
        refuse(None, " is no text file: rules are written in YAML")
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or "it is no YAML"
        refuse(getattr(error, "problem_mark", None), f": {problem}")
    return content, lines


# Readers of single rules; `refuse` raises with line and key.


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _read_range(value: Any, refuse: Refuse) -> tuple[float, float]:
    ends = _as_list(value)
    if len(ends) != 2 or not all(end is None or _is_number(end) for end in ends):
        refuse(f"must be two numbers such as [-5, 40], got {value!r}")
    low, high = (
        end if given is None else float(given) for given, end in zip(ends, (-inf, inf), strict=True)
    )
    if not low < high:
        refuse(f"must be the lower limit and then the upper one, got {value!r}")
    return low, high


def _read_codes(value: Any, refuse: Refuse) -> tuple[float, ...]:
    values = _as_list(value)
    if not values or not all(map(_is_number, values)):
        refuse(f"must be numbers such as [-9999], got {value!r}")
    return tuple(map(float, values))


def _read_amount(value: Any, refuse: Refuse, example: str, rate: str = "") -> Amount:
    match = _AMOUNT.fullmatch(value) if isinstance(value, str) else None
    if match is None or match[2] != rate:
        refuse(f"must look like {example}, got {value!r}")
    if not float(match[1]) > 0:
        refuse(f"must be above 0, got {value!r}")
    return Amount(float(match[1]), UNITS.get(match[3]), str(value))


def _read_rate(value: Any, refuse: Refuse) -> Amount:
    return _read_amount(value, refuse, "2/min or 0.5/row", "/")


def _read_span(value: Any, refuse: Refuse) -> Amount:
    return _read_amount(value, refuse, "6 h, 30 min or 12 rows")


def _read_leave_alone(value: Any, refuse: Refuse) -> bool:
    if not isinstance(value, bool):
        refuse(f"must be true or false, got {value!r}")
    return value


def _read_kinds(value: Any, refuse: Refuse) -> tuple[str, ...]:
    values = _as_list(value)
    if not values or not all(kind in KINDS[1:] for kind in values):
        refuse(f"must be some of {', '.join(KINDS[1:])}, got {value!r}")
    return tuple(values)


def _read_maintenance(value: Any, refuse: Refuse) -> tuple[Interval, ...]:
    result = []
    for pair in _as_list(value):
        if len(_as_list(pair)) != 2:
            refuse(f"must be pairs such as [2024-01-03 08:00, 2024-01-03 12:00], got {pair!r}")
        first, last = (end if isinstance(end, int) else _read_time(end) for end in pair)
        if first is None or last is None or isinstance(first, int) != isinstance(last, int):
            refuse(f"must be pairs of times or of row numbers, got {pair!r}")
        if last < first:
            refuse(f"must begin before it ends, got {pair!r}")
        result.append(Interval(first, last))
    return tuple(result)


def _read_time(value: Any) -> Any:
    """A time, or None if it is none."""
    try:
        time = np.datetime64(str(value).strip().replace(" ", "T"), "ns")
    except ValueError:
        return None
    return None if np.isnat(time) else time


_READERS: dict[str, Callable[[Any, Refuse], Any]] = {
    "range": _read_range,
    "max_change": _read_rate,
    "codes": _read_codes,
    "longest_rest": _read_span,
    "longest_gap": _read_span,
    "leave_alone": _read_leave_alone,
    "maintenance": _read_maintenance,
    "kinds": _read_kinds,
}


# Events to keep


def read_kept(source: Any) -> tuple[Kept, ...]:
    """Events of a table that `sacm quality --flags` wrote and whose column `keep` is filled in.

    Args:
        source: A CSV file or a frame with columns channel, first, last, keep, and first_time and
            last_time where the rows have times.

    Raises:
        ArgumentError: The table cannot be read; the sentence names line and column.
    """
    import pandas as pd

    name, frame = "keep", source
    if isinstance(source, str | Path):
        name = str(source)
        try:
            frame = pd.read_csv(source, dtype=str)
        except OSError as error:
            raise ArgumentError(f"{source} cannot be read: {error.strerror}.") from None
        except pd.errors.EmptyDataError:
            frame = pd.DataFrame()
        except ValueError:  # no text, or no table
            raise ArgumentError(f"{source} is no CSV file of events.") from None
    if not isinstance(frame, pd.DataFrame):
        raise ArgumentError(f"keep must be a CSV file or a frame, got {type(source).__name__}.")
    for column in ("channel", "first", "last", "keep"):
        if column not in frame:
            raise ArgumentError(
                f"{name}, line 1: there is no column {column!r}; `sacm quality --flags` writes "
                "such a table."
            )
    text = frame.astype(object).where(frame.notna(), "").astype(str)
    records: list[Any] = text.to_dict("records")
    kept = []
    for line, record in enumerate(records, 2):
        mark = record["keep"].strip().lower()
        if mark in _NO:
            continue
        try:
            if mark not in _YES:
                raise ArgumentError(f"keep must be yes or empty, got {mark!r}.")
            kept.append(_read_event(record))
        except ArgumentError as error:
            raise ArgumentError(f"{name}, line {line}: {error}") from None
    return tuple(kept)


def _read_event(record: Mapping[str, str]) -> Kept:
    """The event of one line."""
    rows, times = [], []
    for key in ("first", "last"):
        text = record[key].strip()
        if not re.fullmatch(r"\d+(\.0)?", text):
            raise ArgumentError(f"{key} must be a row number, got {text!r}.")
        rows.append(int(float(text)))
        given = record.get(f"{key}_time", "").strip()
        times.append(_read_time(given) if given else None)
        if given and times[-1] is None:
            raise ArgumentError(f"{key}_time is no time: {given!r}.")
    if rows[1] < rows[0]:
        raise ArgumentError(f"last is {rows[1]}, before first, which is {rows[0]}.")
    if not record["channel"]:
        raise ArgumentError("channel is empty.")
    return Kept(record["channel"], Interval(*rows), None if None in times else Interval(*times))


def kept_mask(
    kept: Sequence[Kept], columns: Sequence[str], times: Array | None, numbers: Array
) -> Array:
    """Which values `[T, C]` stay as measured; by time where both have times, else by row."""
    mask = np.zeros((len(numbers), len(columns)), bool)
    for event in kept:
        if event.channel not in columns:
            raise ArgumentError(f"keep names the channel {event.channel!r}, which is not there.")
        span = event.rows if event.times is None or times is None else event.times
        mask[:, list(columns).index(event.channel)] |= span.holds(times, numbers)
    return mask


# Rules on a table


def apply_rules(
    values: Array,
    rows: Rows,
    rules: Sequence[ChannelRules],
    *,
    columns: Sequence[str],
    times: Array | None = None,
    step: float | None = None,
) -> Array:
    """Which rule each value breaks, uint8 `[T, C]`: a position in `RULES`, 0 for none.

    Args:
        values: `[T, C]`, NaN where missing.
        rows: Their segments.
        rules: Of each channel.
        columns: Names of the channels, for errors.
        times: `[T]` datetime64, or None.
        step: Seconds between rows, or None.
    """
    broken = np.zeros(values.shape, np.uint8)
    maintained = under_maintenance(rules, columns, times, np.arange(len(values)))
    for channel, rule in enumerate(rules):
        column, name, ruled = values[:, channel], columns[channel], broken[:, channel]
        if rule.longest_rest is not None:
            most = rule.longest_rest.by_row(step, f"{name}.longest_rest")
            ruled[rests_longer(column, most, rows)] = LONGEST_REST
        if rule.range is not None:
            ruled[(column < rule.range[0]) | (column > rule.range[1])] = RANGE
        ruled[np.isin(column, rule.codes)] = CODES
        ruled[maintained[:, channel]] = MAINTENANCE
        if rule.max_change is not None:
            rate = rule.max_change.by_row(step, f"{name}.max_change")
            accepted = np.isfinite(column) & ((ruled == 0) | (ruled == LONGEST_REST))
            ruled[too_fast(column, accepted, rate, rows)] = MAX_CHANGE
    return broken


def under_maintenance(
    rules: Sequence[ChannelRules], columns: Sequence[str], times: Array | None, numbers: Array
) -> Array:
    """Values `[T, C]` of rows under maintenance; by time, or by row numbers `[T]`."""
    mask = np.zeros((len(numbers), len(columns)), bool)
    for channel, (rule, name) in enumerate(zip(rules, columns, strict=True)):
        for interval in rule.maintenance:
            if times is None and not isinstance(interval.first, int):
                raise ArgumentError(
                    f"{name}.maintenance is by time, but the rows have no times: write row numbers."
                )
            mask[:, channel] |= interval.holds(times, numbers)
    return mask


def too_fast(column: Array, accepted: Array, rate: float, rows: Rows) -> Array:
    """Values `[T]` that differ from the last accepted one by more than `rate` a row."""
    flagged = np.zeros(len(column), bool)
    for segment in rows.segments:
        at = segment.start + np.flatnonzero(accepted[segment.start : segment.stop])
        change = np.abs(np.diff(column[at])) > rate * np.diff(at)
        place = 0
        for first in np.flatnonzero(change):
            if first < place:  # passed while looking for an accepted value
                continue
            last, place = at[first], first + 1
            while place < len(at) and abs(column[at[place]] - column[last]) > rate * (
                at[place] - last
            ):
                flagged[at[place]] = True
                place += 1
    return flagged


def rests_longer(column: Array, most: float, rows: Rows) -> Array:
    """Values `[T]` in runs of equal values of more than `most` rows."""
    same = (column[1:] == column[:-1]) & (rows.first[1:] == rows.first[:-1])
    flagged = np.zeros(len(column), bool)
    for first, stop in zip(*find_segments(same), strict=True):
        flagged[first : stop + 1] = stop - first + 1 > most
    return flagged


def learnt_rules(guard: Any) -> str:
    """A rules file of what a fitted `Guard` learnt, with comments, to be edited."""
    import yaml

    lines = [
        "# Rules as learnt from the data: edit what you know better, delete the rest.",
        f"# Keys: {', '.join(KEYS)}.",
        "# all:",
        "#   longest_gap: 48 rows    # longer gaps are not repaired",
    ]
    for channel, column in enumerate(guard.columns_):
        low, high = guard.range_[channel]
        room = (high - low) * guard.config_.online_range
        codes = ", ".join(f"{code:.10g}" for code in guard.levels_.codes[channel])
        rest = int(guard.levels_.run_limit[channel]) - 1
        change = guard.largest_change_[channel]
        name = yaml.safe_dump({column: None}, width=inf).split(": null")[0].strip()
        lines += ["", f"{name}:"]
        if room > 0:
            comment = f"# values were between {low:.6g} and {high:.6g}"
            lines.append(f"  range: [{low - room:.6g}, {high + room:.6g}]    {comment}")
        lines.append(f"  # longest_rest: {rest} rows    # longest normal run of equal values")
        if codes:
            lines.append(f"  codes: [{codes}]    # stand for a gap")
        if change > 0:
            lines.append(f"  # max_change: {change:.4g}/row    # largest normal change")
        if not room > 0 and not codes:
            lines.append("  leave_alone: false")
    return "\n".join(lines) + "\n"
