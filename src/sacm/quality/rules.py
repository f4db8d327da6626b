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

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np

from sacm.errors import ArgumentError
from sacm.quality.config import CODE, KINDS, RULE, STUCK
from sacm.quality.predictor import Array, Rows, find_segments

ALL = "all"
RULES = ("", "range", "max_change", "codes", "longest_rest", "maintenance")
"""Names of the rules that flag values."""
RANGE, MAX_CHANGE, CODES, LONGEST_REST, MAINTENANCE = range(1, len(RULES))
RULE_KINDS = (0, RULE, RULE, CODE, STUCK, RULE)
"""The flag of what breaks each of them."""
KEYS = (*RULES[1:], "longest_gap", "leave_alone", "kinds")
UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_NUMBER = r"([-+]?\d+\.?\d*(?:[eE][-+]?\d+)?)"
_SPAN = re.compile(rf"^\s*{_NUMBER}\s*(rows?|s|min|h|d)\s*$")
_RATE = re.compile(rf"^\s*{_NUMBER}\s*/\s*(rows?|s|min|h|d)\s*$")
_YES, _NO = ("1", "yes", "y", "true", "x", "keep"), ("", "0", "no", "n", "false")


class Span(NamedTuple):
    """An amount by time or by rows; `seconds` is None for rows."""

    amount: float
    seconds: float | None
    text: str

    def in_rows(self, step: float | None, what: str) -> float:
        """The amount in rows that are `step` seconds apart."""
        if self.seconds is None:
            return self.amount
        if not step:
            raise ArgumentError(
                f"{what}: {self.text!r} is by time, but the rows have no times: write it by rows."
            )
        return self.amount * self.seconds / step

    def per_row(self, step: float | None, what: str) -> float:
        """A rate by time as a rate by row."""
        if self.seconds is None:
            return self.amount
        if not step:
            raise ArgumentError(
                f"{what}: {self.text!r} is by time, but the rows have no times: write it by row."
            )
        return self.amount * step / self.seconds


class Interval(NamedTuple):
    """Rows `first` to `last`, by number or by time."""

    first: Any
    last: Any


class Kept(NamedTuple):
    """An event that stays as measured."""

    channel: str
    rows: Interval
    times: Interval | None


@dataclass(frozen=True)
class ChannelRules:
    """What holds for one channel; None or empty where nothing was said."""

    range: tuple[float, float] | None = None
    max_change: Span | None = None
    codes: tuple[float, ...] = ()
    longest_rest: Span | None = None
    longest_gap: Span | None = None
    leave_alone: bool = False
    maintenance: tuple[Interval, ...] = ()
    kinds: tuple[str, ...] = KINDS[1:]


@dataclass(frozen=True)
class Rules:
    """Rules as they were written, by pattern, and events to keep.

    Attributes:
        source: What errors call them.
        written: Pattern, its line, and its rules by name with their lines.
        kept: Events that stay as measured.
    """

    source: str = "rules"
    written: tuple[tuple[str, int, dict[str, Any]], ...] = ()
    kept: tuple[Kept, ...] = ()

    @classmethod
    def read(cls, rules: Any = None, keep: Any = None) -> Self:
        """Rules of a file, a dict or a `Rules`; and a table of events with a column `keep`.

        Raises:
            ArgumentError: They cannot be read; the sentence names line and key.
        """
        if rules is None:
            made = cls()
        elif isinstance(rules, Rules):
            made = cls(rules.source, rules.written, rules.kept)
        elif isinstance(rules, str | Path):
            made = cls._of_file(Path(rules))
        elif isinstance(rules, Mapping):
            entries: list[Any] = [(str(key), 0, value, {}) for key, value in rules.items()]
            made = cls._of_entries("rules", entries)
        else:
            raise ArgumentError(f"rules must be a file or a dict, got {type(rules).__name__}.")
        kept = made.kept + (read_kept(keep) if keep is not None else ())
        return cls(made.source, made.written, kept)

    @classmethod
    def _of_file(cls, path: Path) -> Self:
        import yaml

        try:
            text = path.read_text(encoding="utf-8")
            loader = yaml.SafeLoader(text)
            node = loader.get_single_node()
        except OSError as error:
            reason = error.strerror or "it cannot be read"
            raise ArgumentError(f"{path} cannot be read: {reason}.") from None
        except UnicodeDecodeError:
            raise ArgumentError(f"{path} is no text file: rules are written in YAML.") from None
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            line = f", line {mark.line + 1}" if mark else ""
            problem = getattr(error, "problem", None) or "it is no YAML"
            raise ArgumentError(f"{path}{line}: {problem}.") from None
        if node is None:
            return cls(str(path))
        if not isinstance(node, yaml.MappingNode):
            raise ArgumentError(
                f"{path}, line {node.start_mark.line + 1}: rules begin with a channel or 'all', "
                "such as 'temperature:', and its rules below."
            )
        entries = []
        for key, value in node.value:
            lines = {}
            if isinstance(value, yaml.MappingNode):
                for inner, _ in value.value:
                    name = str(inner.value)
                    if name in lines:
                        raise ArgumentError(
                            f"{path}, line {inner.start_mark.line + 1}, {key.value}: {name} is "
                            "written twice."
                        )
                    lines[name] = inner.start_mark.line + 1
            try:
                content = loader.construct_object(value, deep=True)
            except (yaml.YAMLError, ValueError) as error:
                raise ArgumentError(
                    f"{path}, line {value.start_mark.line + 1}, {key.value}: {error}."
                ) from None
            entries.append((str(key.value), key.start_mark.line + 1, content, lines))
        return cls._of_entries(str(path), entries)

    @classmethod
    def _of_entries(cls, source: str, entries: Sequence[tuple[str, int, Any, dict]]) -> Self:
        written, seen = [], set()
        for pattern, line, content, inner in entries:
            if pattern in seen:
                _refuse(source, line, pattern, None, "is written twice")
            seen.add(pattern)
            if content is None:
                _refuse(source, line, pattern, None, "has no rule: write one below, or delete it")
            if not isinstance(content, Mapping):
                _refuse(source, line, pattern, None, f"holds {content!r}, not rules such as range")
            rules = {}
            for key, value in content.items():
                at = inner.get(str(key), line)
                if key not in KEYS:
                    _refuse(
                        source, at, pattern, str(key), f"is no rule; rules are {', '.join(KEYS)}"
                    )
                rules[key] = _READERS[key](value, partial(_refuse, source, at, pattern, key))
            written.append((pattern, line, rules))
        return cls(source, tuple(written))

    def of_channels(self, columns: Sequence[str]) -> list[ChannelRules]:
        """The rules of each channel: those for all, then of patterns, then of its own name.

        Raises:
            ArgumentError: A name matches no channel.
        """
        for pattern, line, _ in self.written:
            if pattern != ALL and not any(fnmatchcase(column, pattern) for column in columns):
                shown = ", ".join(columns[:8]) + (", ..." if len(columns) > 8 else "")
                _refuse(
                    self.source, line, pattern, None, f"matches no channel; channels are {shown}"
                )
        result = []
        for column in columns:
            named = [w for w in self.written if w[0] == ALL]
            named += [
                w for w in self.written if w[0] not in (ALL, column) and fnmatchcase(column, w[0])
            ]
            named += [w for w in self.written if w[0] == column and w[0] != ALL]
            merged: dict[str, Any] = {}
            for _, _, rules in named:
                merged |= rules
            result.append(ChannelRules(**merged))
        return result

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a saved guard."""
        plain = {
            pattern: {key: _plain(value) for key, value in rules.items()}
            for pattern, _, rules in self.written
        }
        kept = [
            [k.channel, *map(int, k.rows), *(map(str, k.times) if k.times else ())]
            for k in self.kept
        ]
        return {"rules": plain, "kept": kept}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        """The rules that `to_dict` described."""
        made = cls.read(record["rules"])
        kept = tuple(
            Kept(
                entry[0],
                Interval(*entry[1:3]),
                Interval(*map(np.datetime64, entry[3:])) if len(entry) > 3 else None,
            )
            for entry in record["kept"]
        )
        return cls(made.source, made.written, kept)


def _plain(value: Any) -> Any:
    if isinstance(value, Span):
        return value.text
    if isinstance(value, tuple) and value and isinstance(value[0], Interval):
        return [[e if isinstance(e, int) else str(e) for e in pair] for pair in value]
    return list(value) if isinstance(value, tuple) else value


def _refuse(source: str, line: int, pattern: str, key: str | None, why: str) -> NoReturn:
    where = source + (f", line {line}" if line else "")
    what = pattern if key is None else f"{pattern}.{key}"
    raise ArgumentError(f"{where}: {what} {why}.")


# Readers of single rules; `refuse` raises with line and key.


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def _read_range(value: Any, refuse: Any) -> tuple[float, float]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        refuse(f"must be two numbers such as [-5, 40], got {value!r}")
    ends = []
    for end, open_end in zip(value, (-inf, inf), strict=True):
        if end is None:
            end = open_end
        if not _is_number(end):
            refuse(f"must be two numbers such as [-5, 40], got {value!r}")
        ends.append(float(end))
    if not ends[0] < ends[1]:
        refuse(f"must be the lower limit and then the upper one, got {value!r}")
    return ends[0], ends[1]


def _read_codes(value: Any, refuse: Any) -> tuple[float, ...]:
    values = value if isinstance(value, list | tuple) else [value]
    if not values or not all(map(_is_number, values)):
        refuse(f"must be numbers such as [-9999], got {value!r}")
    return tuple(map(float, values))


def _parse(value: Any, pattern: re.Pattern[str], example: str, refuse: Any) -> Span:
    match = pattern.match(value) if isinstance(value, str) else None
    if match is None:
        refuse(f"must look like {example}, got {value!r}")
    assert match is not None  # `refuse` raises
    if not float(match[1]) > 0:
        refuse(f"must be above 0, got {value!r}")
    return Span(float(match[1]), UNITS.get(match[2]), str(value))


def _read_rate(value: Any, refuse: Any) -> Span:
    return _parse(value, _RATE, "2/min or 0.5/row", refuse)


def _read_span(value: Any, refuse: Any) -> Span:
    return _parse(value, _SPAN, "6 h, 30 min or 12 rows", refuse)


def _read_leave_alone(value: Any, refuse: Any) -> bool:
    if not isinstance(value, bool):
        refuse(f"must be true or false, got {value!r}")
    return bool(value)


def _read_kinds(value: Any, refuse: Any) -> tuple[str, ...]:
    values = value if isinstance(value, list | tuple) else [value]
    wrong = [kind for kind in values if kind not in KINDS[1:]]
    if wrong or not values:
        refuse(f"must be some of {', '.join(KINDS[1:])}, got {value!r}")
    return tuple(values)


def _read_maintenance(value: Any, refuse: Any) -> tuple[Interval, ...]:
    pairs = value if isinstance(value, list | tuple) else [value]
    result = []
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            refuse(f"must be pairs such as [2024-01-03 08:00, 2024-01-03 12:00], got {pair!r}")
        ends = [end if isinstance(end, int) else _read_time(end) for end in pair]
        if any(end is None for end in ends) or isinstance(ends[0], int) != isinstance(ends[1], int):
            refuse(f"must be pairs of times or of row numbers, got {pair!r}")
        if ends[1] < ends[0]:  # type: ignore[operator]  # both are times or both are rows
            refuse(f"must begin before it ends, got {pair!r}")
        result.append(Interval(*ends))
    return tuple(result)


def _read_time(value: Any) -> np.datetime64 | None:
    try:
        time = np.datetime64(str(value).strip().replace(" ", "T"), "ns")
    except ValueError:
        return None
    return None if np.isnat(time) else time


_READERS = {
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
    if isinstance(source, str | Path):
        name, records = str(source), _csv_records(Path(source))
    elif hasattr(source, "to_dict") and hasattr(source, "columns"):
        records = [{k: _text(v) for k, v in r.items()} for r in source.to_dict("records")]
        name = "keep"
        _check_columns(name, list(map(str, source.columns)))
    else:
        raise ArgumentError(f"keep must be a CSV file or a frame, got {type(source).__name__}.")
    kept = []
    for line, record in enumerate(records, 2):
        where = f"{name}, line {line}"
        mark = _text(record.get("keep")).strip().lower()
        if mark not in (*_YES, *_NO):
            raise ArgumentError(f"{where}: keep must be yes or empty, got {mark!r}.")
        if mark in _NO:
            continue
        rows = []
        for key in ("first", "last"):
            text = _text(record.get(key)).strip()
            if not re.fullmatch(r"\d+(\.0)?", text):
                raise ArgumentError(f"{where}: {key} must be a row number, got {text!r}.")
            rows.append(int(float(text)))
        if rows[1] < rows[0]:
            raise ArgumentError(f"{where}: last is {rows[1]}, before first, which is {rows[0]}.")
        times = [_text(record.get(key)).strip() for key in ("first_time", "last_time")]
        parsed = [_read_time(text) if text else None for text in times]
        for key, text, time in zip(("first_time", "last_time"), times, parsed, strict=True):
            if text and time is None:
                raise ArgumentError(f"{where}: {key} is no time: {text!r}.")
        span = Interval(*parsed) if all(time is not None for time in parsed) else None
        channel = _text(record.get("channel"))
        if not channel:
            raise ArgumentError(f"{where}: channel is empty.")
        kept.append(Kept(channel, Interval(*rows), span))
    return tuple(kept)


def _text(value: Any) -> str:
    return "" if value is None or value != value else str(value)


def _check_columns(name: str, columns: Sequence[str]) -> None:
    for wanted in ("channel", "first", "last", "keep"):
        if wanted not in columns:
            raise ArgumentError(
                f"{name}, line 1: there is no column {wanted!r}; `sacm quality --flags` writes "
                "such a table."
            )


def _csv_records(path: Path) -> Iterable[dict[str, str]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            _check_columns(str(path), reader.fieldnames or [])
            return list(reader)
    except OSError as error:
        raise ArgumentError(
            f"{path} cannot be read: {error.strerror or 'it cannot be read'}."
        ) from None
    except (UnicodeDecodeError, csv.Error):
        raise ArgumentError(f"{path} is no CSV file of events.") from None


def kept_mask(
    kept: Sequence[Kept],
    columns: Sequence[str],
    times: Array | None,
    rows: int,
    first_row: int = 0,
) -> Array:
    """Which values `[T, C]` stay as measured; by time where both have times, else by row."""
    numbers = np.arange(first_row, first_row + rows)
    mask = np.zeros((rows, len(columns)), bool)
    for event in kept:
        if event.channel not in columns:
            raise ArgumentError(f"keep names the channel {event.channel!r}, which is not there.")
        channel = list(columns).index(event.channel)
        if event.times is not None and times is not None:
            first, last = event.times
            mask[(times >= first) & (times <= last), channel] = True
        else:
            first, last = event.rows
            mask[(numbers >= first) & (numbers <= last), channel] = True
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
    for channel, own in enumerate(rules):
        column, name, ruled = values[:, channel], columns[channel], broken[:, channel]
        if own.longest_rest is not None:
            most = own.longest_rest.in_rows(step, f"{name}.longest_rest")
            ruled[rests_longer(column, most, rows)] = LONGEST_REST
        if own.range is not None:
            ruled[(column < own.range[0]) | (column > own.range[1])] = RANGE
        ruled[np.isin(column, own.codes)] = CODES
        ruled[inside(own.maintenance, times, np.arange(len(values)), name)] = MAINTENANCE
        if own.max_change is not None:
            rate = own.max_change.per_row(step, f"{name}.max_change")
            known = np.isfinite(column) & ((ruled == 0) | (ruled == LONGEST_REST))
            ruled[too_fast(column, known, rate, rows)] = MAX_CHANGE
    return broken


def inside(intervals: Sequence[Interval], times: Array | None, numbers: Array, name: str) -> Array:
    """Rows `[T]` in any of the intervals, by time or by row number."""
    mask = np.zeros(len(numbers), bool)
    for first, last in intervals:
        if isinstance(first, int):
            mask |= (numbers >= first) & (numbers <= last)
        elif times is None:
            raise ArgumentError(
                f"{name}.maintenance is by time, but the rows have no times: write row numbers."
            )
        else:
            mask |= (times >= first) & (times <= last)
    return mask


def too_fast(column: Array, known: Array, rate: float, rows: Rows) -> Array:
    """Known values `[T]` that differ from the last accepted one by more than `rate` a row."""
    flagged = np.zeros(len(column), bool)
    for segment in rows.segments:
        at = np.arange(segment.start, segment.stop)[known[segment.start : segment.stop]]
        if len(at) < 2:
            continue
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
        if stop - first + 1 > most:
            flagged[first : stop + 1] = True
    return flagged


def learnt_rules(guard: Any) -> str:
    """A rules file of what a fitted guard learnt, with comments, to be edited.

    Args:
        guard: A fitted `Guard`.
    """
    import yaml

    lines = [
        "# Rules as learnt from the data: edit what you know better, delete the rest.",
        f"# Keys: {', '.join(KEYS)}.",
        "# all:",
        "#   longest_gap: 48 rows    # longer gaps are not repaired",
    ]
    for channel, column in enumerate(guard.columns_):
        low, high = guard.range_[channel]
        room = max(high - low, 0.0) * guard.config_.online_range
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
