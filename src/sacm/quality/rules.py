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
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Self

import numpy as np

from sacm.errors import ArgumentError
from sacm.quality.config import FAIL, KINDS, Kind
from sacm.quality.predictor import Array, Rows, find_segments, list_names

if TYPE_CHECKING:
    from sacm.quality.guard import Guard
    from sacm.quality.result import Quality

ALL = "all"
RULES = ("", "range", "max_change", "codes", "longest_rest", "maintenance")
"""Names of the rules that flag values."""
RANGE, MAX_CHANGE, CODES, LONGEST_REST, MAINTENANCE = range(1, len(RULES))
RULE_KINDS = (0, Kind.RULE, Kind.RULE, Kind.CODE, Kind.STUCK, Kind.RULE)
"""The flag of what breaks each of them."""
KEYS = (*RULES[1:], "longest_gap", "leave_alone", "kinds")
UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_AMOUNT = re.compile(r"\s*([-+]?\d+\.?\d*(?:[eE][-+]?\d+)?)\s*(/?)\s*(rows?|s|min|h|d)\s*")
_YES, _NO = ("1", "yes", "y", "true", "x", "keep"), ("", "0", "no", "n", "false")


class Interval(NamedTuple):
    """First and last row by number, by time, or both; times count where the rows have them."""

    rows: tuple[int, int] | None
    times: tuple[Any, Any] | None

    def holds(self, times: Array | None, numbers: Array, rule: str) -> Array:
        """Which rows `[T]` lie in it."""
        by_time = self.times is not None and times is not None
        where, ends = (times, self.times) if by_time else (numbers, self.rows)
        if where is None or ends is None:
            raise ArgumentError(
                f"{rule} is by time, but the rows have no times: write row numbers."
            )
        inside: Array = (where >= ends[0]) & (where <= ends[1])
        return inside


@dataclass(frozen=True)
class ChannelRules:
    """What holds for one channel, with changes by row and lengths in rows."""

    name: str = ""
    range: tuple[float, float] = (-inf, inf)
    max_change: float = inf
    codes: tuple[float, ...] = ()
    longest_rest: float | None = None
    longest_gap: float = inf
    leave_alone: bool = False
    maintenance: tuple[Interval, ...] = ()
    kinds: tuple[str, ...] = KINDS[1:]
    keep: tuple[Interval, ...] = ()


@dataclass(frozen=True)
class Rules:
    """Rules as they were written, by pattern, and events to keep.

    Attributes:
        written: The rules of each pattern, as in a file.
        kept: Channel and rows of events that stay as measured.
        source: What errors call them.
        lines: The line of each pattern and of each of its rules.
    """

    written: dict[str, dict[str, Any]] = field(default_factory=dict)
    kept: tuple[tuple[str, Interval], ...] = ()
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
            if key not in KEYS:
                self._refuse(f"is no rule; rules are {', '.join(KEYS)}", pattern, str(key))
            try:
                result[key] = _READERS[key](value)
            except _MalformedError as error:
                self._refuse(f"must {error}, got {value!r}", pattern, key)
        return result

    def of_channels(self, columns: Sequence[str], step: float | None) -> list[ChannelRules]:
        """The rules of each channel: those for all, then of patterns, then of its own name.

        Args:
            columns: Names of the channels.
            step: Seconds between rows, None without times.

        Raises:
            ArgumentError: A name matches no channel, or a rule is by time and there are no times.
        """
        merged: list[dict[str, Any]] = [{} for _ in columns]
        for pattern in sorted(self.written, key=lambda p: (p != ALL, p in columns)):
            matched = [
                rules
                for name, rules in zip(columns, merged, strict=True)
                if pattern == ALL or fnmatchcase(name, pattern)
            ]
            if not matched and pattern != ALL:
                self._refuse(f"matches no channel; channels are {list_names(columns)}", pattern)
            parsed = self._parse(pattern)
            for key, value in parsed.items():
                if callable(value):
                    parsed[key] = value(step, f"{pattern}.{key}")
            for rules in matched:
                rules |= parsed
        for name, rows in self.kept:
            if name not in columns:
                raise ArgumentError(f"keep names the channel {name!r}, which is not there.")
            rules = merged[list(columns).index(name)]
            rules["keep"] = (*rules.get("keep", ()), rows)
        return [ChannelRules(name, **own) for name, own in zip(columns, merged, strict=True)]

    def to_dict(self) -> dict[str, Any]:
        """What a saved guard keeps; times are written as text."""
        return {"rules": self.written, "kept": self.kept}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        """The rules that `to_dict` described."""
        kept = [
            (name, Interval(rows, times and tuple(map(np.datetime64, times))))
            for name, (rows, times) in record["kept"]
        ]
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


# Readers of single rules


class _MalformedError(Exception):
    """A value of a rule is wrong; the message completes "must ..."."""


def _numbers(value: Any) -> list[Any]:
    """One or several values, of which some may be None."""
    values = list(value) if isinstance(value, list | tuple) else [value]
    plain = [isinstance(v, int | float) and not isinstance(v, bool) and v == v for v in values]
    return values if all(ok or v is None for ok, v in zip(plain, values, strict=True)) else []


def _read_range(value: Any) -> tuple[float, float]:
    ends = _numbers(value)
    if len(ends) != 2:
        raise _MalformedError("be two numbers such as [-5, 40]")
    low, high = -inf if ends[0] is None else ends[0], inf if ends[1] is None else ends[1]
    if not low < high:
        raise _MalformedError("be the lower limit and then the upper one")
    return float(low), float(high)


def _read_codes(value: Any) -> tuple[float, ...]:
    values = _numbers(value)
    if not values or None in values:
        raise _MalformedError("be numbers such as [-9999]")
    return tuple(map(float, values))


def _read_amount(value: Any, *, rate: str, example: str) -> Callable[[float | None, str], float]:
    """A function of the seconds between rows, which are known later: 6 h in rows, 2/min by row."""
    match = _AMOUNT.fullmatch(value) if isinstance(value, str) else None
    if match is None or match[2] != rate:
        raise _MalformedError(f"look like {example}")
    amount, seconds = float(match[1]), UNITS.get(match[3])
    if not amount > 0:
        raise _MalformedError("be above 0")

    def by_row(step: float | None, rule: str) -> float:
        if seconds is None:
            return amount
        if not step:
            raise ArgumentError(
                f"{rule}: {value!r} is by time, but the rows have no times: write it by rows."
            )
        return amount / (seconds / step) if rate else amount * (seconds / step)

    return by_row


def _read_leave_alone(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _MalformedError("be true or false")
    return value


def _read_kinds(value: Any) -> tuple[str, ...]:
    values = value if isinstance(value, list | tuple) else [value]
    if not values or not all(kind in KINDS[1:] for kind in values):
        raise _MalformedError(f"be some of {', '.join(KINDS[1:])}")
    return tuple(values)


def _read_maintenance(value: Any) -> tuple[Interval, ...]:
    result = []
    for pair in value if isinstance(value, list | tuple) else [value]:
        ends = pair if isinstance(pair, list | tuple) else ()
        by_row = all(isinstance(end, int) for end in ends)
        ends = tuple(ends if by_row else map(_read_time, ends))
        if len(ends) != 2 or None in ends:
            raise _MalformedError(
                "be pairs of times or of row numbers such as [2024-01-03 08:00, 2024-01-03 12:00]"
            )
        if ends[1] < ends[0]:
            raise _MalformedError("begin before it ends")
        result.append(Interval(ends, None) if by_row else Interval(None, ends))
    return tuple(result)


def _read_time(value: Any) -> Any:
    """A time, or None if it is none."""
    try:
        time = np.datetime64(str(value).strip().replace(" ", "T"), "ns")
    except ValueError:
        return None
    return None if isinstance(value, int) or np.isnat(time) else time


_read_span = partial(_read_amount, rate="", example="6 h, 30 min or 12 rows")
_READERS: dict[str, Callable[[Any], Any]] = {
    "range": _read_range,
    "max_change": partial(_read_amount, rate="/", example="2/min or 0.5/row"),
    "codes": _read_codes,
    "longest_rest": _read_span,
    "longest_gap": _read_span,
    "leave_alone": _read_leave_alone,
    "maintenance": _read_maintenance,
    "kinds": _read_kinds,
}


# Events to keep


def read_kept(source: Any) -> tuple[tuple[str, Interval], ...]:
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
    kept = []
    text = frame.astype(object).where(frame.notna(), "").astype(str)
    for line, record in enumerate(text.to_dict("records"), 2):
        fields = {str(key): value.strip() for key, value in record.items()}
        mark = fields["keep"].lower()
        try:
            if mark not in (*_YES, *_NO):
                raise ArgumentError(f"keep must be yes or empty, got {mark!r}.")
            if mark in _YES:
                kept.append((fields["channel"], _read_event(fields)))
        except ArgumentError as error:
            raise ArgumentError(f"{name}, line {line}: {error}") from None
    return tuple(kept)


def _read_event(record: Mapping[str, str]) -> Interval:
    """The rows of the event of one line."""
    if not record["channel"]:
        raise ArgumentError("channel is empty.")
    rows, times = [], []
    for key in ("first", "last"):
        if not re.fullmatch(r"\d+(\.0)?", record[key]):
            raise ArgumentError(f"{key} must be a row number, got {record[key]!r}.")
        rows.append(int(float(record[key])))
        written = record.get(f"{key}_time", "")
        times.append(_read_time(written))
        if written and times[-1] is None:
            raise ArgumentError(f"{key}_time is no time: {written!r}.")
    first, last = rows
    if last < first:
        raise ArgumentError(f"last is {last}, before first, which is {first}.")
    return Interval((first, last), None if None in times else (times[0], times[1]))


# Rules on a table


def rows_of_rule(
    rule: str, rules: Sequence[ChannelRules], times: Array | None, numbers: Array
) -> Array:
    """Values `[T, C]` in the intervals of `maintenance` or `keep`; by time, or by row numbers."""
    mask = np.zeros((len(numbers), len(rules)), bool)
    for channel, own in enumerate(rules):
        for interval in getattr(own, rule):
            mask[:, channel] |= interval.holds(times, numbers, f"{own.name}.{rule}")
    return mask


def apply_rules(
    values: Array, rows: Rows, rules: Sequence[ChannelRules], times: Array | None = None
) -> Array:
    """Which rule each value `[T, C]` breaks, uint8: a position in `RULES`, 0 for none."""
    broken = np.zeros(values.shape, np.uint8)
    maintained = rows_of_rule("maintenance", rules, times, np.arange(len(values)))
    for channel, rule in enumerate(rules):
        column, ruled = values[:, channel], broken[:, channel]
        if rule.longest_rest is not None:
            ruled[_rests_longer(column, rule.longest_rest, rows)] = LONGEST_REST
        ruled[(column < rule.range[0]) | (column > rule.range[1])] = RANGE
        ruled[np.isin(column, rule.codes)] = CODES
        ruled[maintained[:, channel]] = MAINTENANCE
        if rule.max_change < inf:
            accepted = np.isfinite(column) & ((ruled == 0) | (ruled == LONGEST_REST))
            ruled[_too_fast(column, accepted, rule.max_change, rows)] = MAX_CHANGE
    return broken


def _too_fast(column: Array, accepted: Array, rate: float, rows: Rows) -> Array:
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


def _rests_longer(column: Array, most: float, rows: Rows) -> Array:
    """Values `[T]` in runs of equal values of more than `most` rows."""
    same = (column[1:] == column[:-1]) & (rows.first[1:] == rows.first[:-1])
    flagged = np.zeros(len(column), bool)
    for first, stop in zip(*find_segments(same), strict=True):
        flagged[first : stop + 1] = stop - first + 1 > most
    return flagged


def learnt_rules(guard: Guard, quality: Quality) -> str:
    """A rules file of what a guard learnt from the rows that it inspected, to be edited."""
    import yaml

    lines = [
        "# Rules as learnt from the data: edit what you know better, delete the rest.",
        f"# Keys: {', '.join(KEYS)}.",
        "# all:",
        "#   longest_gap: 48 rows    # longer gaps are not repaired",
    ]
    at, _ = quality.recording.training_part()
    normal = np.where(quality.grades == FAIL, np.nan, quality.recording.values)[at]
    for column, values, codes, limit in zip(
        guard.columns_, normal.T, guard.levels_.codes, guard.levels_.run_limit, strict=True
    ):
        finite = values[np.isfinite(values)]
        low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 0.0)
        room = (high - low) * guard.config_.online_range
        change = np.nan_to_num(np.abs(np.diff(values))).max(initial=0.0)
        name = yaml.safe_dump({column: None}, width=inf).split(": null")[0].strip()
        lines += ["", f"{name}:"]
        if room > 0:
            comment = f"# values were between {low:.6g} and {high:.6g}"
            lines.append(f"  range: [{low - room:.6g}, {high + room:.6g}]    {comment}")
        lines.append(f"  # longest_rest: {limit - 1} rows    # longest normal run of equal values")
        if codes:
            text = ", ".join(f"{code:.10g}" for code in codes)
            lines.append(f"  codes: [{text}]    # stand for a gap")
        if change > 0:
            lines.append(f"  # max_change: {change:.4g}/row    # largest normal change")
        if not room > 0 and not codes:
            lines.append("  leave_alone: false")
    return "\n".join(lines) + "\n"
