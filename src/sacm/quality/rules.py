"""What an engineer knows about the channels: limits, codes, maintenance, events to keep.

A rules file names channels, patterns such as `temp_*`, or `all`, and what holds for them, such as
`temperature: {range: [-5, 40], max_change: 2/min}`. It is obeyed exactly; events name the rule.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from sacm.errors import ArgumentError, list_names
from sacm.quality.config import FAIL, KINDS, Kind
from sacm.quality.predictor import Array, Rows, find_segments

if TYPE_CHECKING:
    from sacm.quality.guard import Guard
    from sacm.quality.result import Quality

# The rules that flag values, and the flag of what breaks each of them.
RULES = ("", "range", "max_change", "codes", "longest_rest", "maintenance", "needs")
RANGE, MAX_CHANGE, CODES, LONGEST_REST, MAINTENANCE, NEEDS = range(1, len(RULES))
RULE_KINDS = (0, Kind.RULE, Kind.RULE, Kind.CODE, Kind.STUCK, Kind.RULE, Kind.RULE)
_SPAN = "look like 6 h, 30 min or 12 rows, above 0"
_WANTED = {
    "range": "be two numbers such as [-5, 40], the lower limit first",
    "max_change": "look like 2/min or 0.5/row, above 0",
    "codes": "be numbers such as [-9999]",
    "longest_rest": _SPAN,
    "maintenance": "be pairs of times or rows such as [2024-01-03, 2024-01-04], the earlier first",
    "needs": "be channels or patterns such as [temp, *cond]",
    "longest_gap": _SPAN,
    "leave_alone": "be true or false",
    "kinds": f"be some of {', '.join(KINDS[1:])}",
}
KEYS = tuple(_WANTED)
UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_AMOUNT = re.compile(r"\s*(\d+\.?\d*(?:[eE][-+]?\d+)?)\s*(/?)\s*(rows?|s|min|h|d)\s*")
_YES, _NO = ("1", "yes", "y", "true", "x", "keep"), ("", "0", "no", "n", "false")


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
    maintenance: tuple[tuple[Any, Any], ...] = ()  # first and last row, by number or by time
    needs: tuple[str, ...] = ()  # patterns of other channels
    kinds: tuple[str, ...] = KINDS[1:]
    keep: tuple[tuple[Any, Any], ...] = ()


@dataclass(frozen=True)
class Rules:
    """Rules as they were written, by pattern, and events to keep."""

    written: dict[str, Any]
    kept: tuple[tuple[Any, ...], ...]  # channel, first and last row or time as text
    source: str = "rules"  # what errors call them
    lines: dict[tuple[str, ...], int] = field(default_factory=dict)  # of patterns and rules

    @classmethod
    def read(cls, rules: Any = None, keep: Any = None) -> Self:
        """Rules of a file, a dict or a `Rules`; and a table of events with a column `keep`."""
        kept = () if keep is None else read_kept(keep)
        if isinstance(rules, cls):
            return replace(rules, kept=rules.kept + kept)
        if isinstance(rules, str | Path):
            written, lines = _read_yaml(Path(rules))
            return cls(written, kept, str(rules), lines)
        if not isinstance(rules, Mapping | None):
            raise ArgumentError(f"rules must be a file or a dict, got {type(rules).__name__}.")
        return cls({str(key): value for key, value in (rules or {}).items()}, kept)

    def _refuse(self, why: str, *key: str) -> NoReturn:
        line = self.lines.get(key, self.lines.get(key[:1]))
        where = f"{self.source}, line {line}" if line else self.source
        raise ArgumentError(f"{where}: {'.'.join(key)} {why}.")

    def _parse(self, pattern: str, step: float | None) -> dict[str, Any]:
        """The rules of a pattern as `ChannelRules` holds them; rows come every `step` seconds."""
        content, result = self.written[pattern], {}
        if not isinstance(content, Mapping):
            self._refuse(f"holds {content!r}, not rules such as range: write one below", pattern)
        for key, value in content.items():
            if key not in KEYS:
                self._refuse(f"is no rule; rules are {', '.join(KEYS)}", pattern, str(key))
            try:
                result[key] = _read_rule(key, value, step)
            except ArgumentError as error:
                self._refuse(f"= {value!r} {error}", pattern, key)
            except (TypeError, ValueError):
                self._refuse(f"must {_WANTED[key]}, got {value!r}", pattern, key)
        return result

    def of_channels(self, columns: Sequence[str], step: float | None) -> list[ChannelRules]:
        """The rules of each channel: those for all, then of patterns, then of its own name."""
        merged: dict[str, dict[str, Any]] = {name: {} for name in columns}
        nothing = f"matches no channel; channels are {list_names(columns)}"
        for pattern in sorted(self.written, key=lambda p: (p != "all", p in columns)):
            matched = [n for n in columns if pattern == "all" or fnmatchcase(n, pattern)]
            if not matched:
                self._refuse(nothing, pattern)
            own = self._parse(pattern, step)
            for needed in own.get("needs", ()):
                if not any(fnmatchcase(n, needed) for n in columns):
                    self._refuse(f"names {needed}, which {nothing}", pattern, "needs")
            for name in matched:
                merged[name] |= own
        for name, *ends in self.kept:
            if name not in merged:
                raise ArgumentError(f"keep names the channel {name!r}, which is not there.")
            interval = _read_rule("maintenance", [ends], step)
            merged[name]["keep"] = merged[name].get("keep", ()) + interval
        return [ChannelRules(name, **merged[name]) for name in columns]


def _read_yaml(path: Path) -> tuple[dict[str, Any], dict[tuple[str, ...], int]]:
    """Content of a rules file, and the line of each key."""
    import yaml

    lines: dict[tuple[str, ...], int] = {}

    def refuse(mark: Any, why: str) -> NoReturn:
        raise ArgumentError(f"{path}, line {mark.line + 1}: {why}.") from None

    def read(node: Any, *above: str) -> Any:
        if len(above) > 1 or not isinstance(node, yaml.MappingNode):
            try:
                return loader.construct_object(node, deep=True)
            except (TypeError, ValueError) as error:  # such as a thirteenth month
                refuse(node.start_mark, f"{'.'.join(above)} holds what is no value: {error}")
        content = {}
        for key, value in node.value:
            name = (*above, str(key.value))
            if not isinstance(key, yaml.ScalarNode):
                refuse(key.start_mark, "a channel or a rule must be a name")
            if name in lines:
                refuse(key.start_mark, f"{'.'.join(name)} is written twice")
            lines[name] = key.start_mark.line + 1
            content[key.value] = read(value, *name)
        return content

    try:
        loader = yaml.SafeLoader(path.read_text(encoding="utf-8"))
        root = loader.get_single_node() or yaml.MappingNode("", [])
        if not isinstance(root, yaml.MappingNode):
            refuse(root.start_mark, "rules begin with a channel such as 'temperature:', or 'all:'")
        return read(root), lines
    except yaml.MarkedYAMLError as error:
        refuse(error.problem_mark, str(error.problem))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        why = getattr(error, "strerror", "it is no text file")
        raise ArgumentError(f"{path} cannot be read: {why}.") from None


def _read_rule(key: str, value: Any, step: float | None) -> Any:
    """One rule as `ChannelRules` holds it; a TypeError or ValueError if it is malformed."""
    values = value if isinstance(value, list | tuple) else [value]
    if key == "range":
        low, high = values
        low, high = -inf if low is None else _number(low), inf if high is None else _number(high)
        if low < high:
            return low, high
    if key == "codes" and values:
        return tuple(map(_number, values))
    known = {"kinds": KINDS[1:], "needs": [name for name in values if isinstance(name, str)]}
    if key in known and values and all(value in known[key] for value in values):
        return tuple(values)
    if key == "leave_alone" and isinstance(value, bool):
        return value
    if key == "maintenance":
        by_row = [all(isinstance(end, int) for end in pair) for pair in values]
        pairs = [p if row else map(read_time, p) for p, row in zip(values, by_row, strict=True)]
        intervals = tuple((first, last) for first, last in pairs)
        if all(first <= last for first, last in intervals):
            return intervals
    match = _AMOUNT.fullmatch(value)  # a TypeError if it is no text
    if match is None or bool(match[2]) != (key == "max_change") or not float(match[1]) > 0:
        raise ValueError
    amount, seconds = float(match[1]), UNITS.get(match[3])
    if seconds is None:
        return amount
    if not step:
        raise ArgumentError("is by time, but the rows have no times: write it by rows")
    return amount / (seconds / step) if match[2] else amount * (seconds / step)


def _number(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or value != value:
        raise TypeError
    return float(value)


def read_time(value: Any) -> np.datetime64:
    """A time; a ValueError if it is none."""
    time = np.datetime64(str(value).strip().replace(" ", "T"), "ns")
    if isinstance(value, int) or np.isnat(time):
        raise ValueError
    return time


def read_kept(source: Any) -> tuple[tuple[Any, ...], ...]:
    """Events of a file or frame of `sacm quality --flags` whose column `keep` is filled in."""
    import pandas as pd

    name, frame = "keep", source
    if isinstance(source, str | Path):
        name = str(source)
        try:
            frame = pd.read_csv(source, dtype=str)
        except pd.errors.EmptyDataError:
            frame = pd.DataFrame()
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", "it is no CSV file of events")
            raise ArgumentError(f"{source} cannot be read: {why}.") from None
    if not isinstance(frame, pd.DataFrame):
        raise ArgumentError(f"keep must be a CSV file or a frame, got {type(source).__name__}.")
    needed = ("channel", "first", "last", "keep")
    for column in (column for column in needed if column not in frame):
        why = f"there is no column {column!r}; `sacm quality --flags` writes such a table"
        raise ArgumentError(f"{name}, line 1: {why}.")
    text = frame.reindex(columns=[*needed, "first_time", "last_time"]).astype(object)
    text = text.where(text.notna(), "").map(lambda cell: str(cell).strip()).reset_index(drop=True)

    def refuse(wrong: pd.Series, why: str) -> None:
        for line in wrong.index[wrong]:
            raise ArgumentError(f"{name}, line {line + 2}: {why}.")

    marks = text["keep"].str.lower()
    refuse(~marks.isin((*_YES, *_NO)), "keep must be yes or empty")
    text = text[marks.isin(_YES)]
    refuse(text["channel"] == "", "channel is empty")
    ends = pd.DataFrame({"channel": text["channel"]})
    timed, times = (text[["first_time", "last_time"]] != "").all(axis=1), {}
    for key in ("first", "last"):
        refuse(~text[key].str.fullmatch(r"0*[1-9]\d*(\.0)?"), f"{key} must be a row number")
        rows, written = text[key].astype(float).astype(int), text[f"{key}_time"]
        times[key] = pd.to_datetime(written, errors="coerce", format="ISO8601", utc=True)
        refuse(times[key].isna() & (written != ""), f"{key}_time is no time")
        ends[key] = written.where(timed, rows - 1)  # the first row is row 1
    refuse(text["last"].astype(float) < text["first"].astype(float), "last is before first")
    refuse(times["last"] < times["first"], "last_time is before first_time")
    return tuple(ends.itertuples(index=False, name=None))


def rows_of_rule(
    rule: str, rules: Sequence[ChannelRules], times: Array | None, numbers: Array
) -> Array:
    """Values `[T, C]` in the intervals of `maintenance` or `keep`; by time, or by row numbers."""
    mask = np.zeros((len(numbers), len(rules)), bool)
    for channel, own in enumerate(rules):
        for first, last in getattr(own, rule):
            where = numbers if isinstance(first, int) else times
            if where is None:
                why = "is by time, but the rows have no times: write row numbers"
                raise ArgumentError(f"{own.name}.{rule} {why}.")
            mask[:, channel] |= (where >= first) & (where <= last)
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
            same = (column[1:] == column[:-1]) & (rows.first[1:] == rows.first[:-1])
            for first, stop in zip(*find_segments(same), strict=True):
                ruled[first : stop + 1] = LONGEST_REST * (stop - first + 1 > rule.longest_rest)
        ruled[(column < rule.range[0]) | (column > rule.range[1])] = RANGE
        ruled[np.isin(column, rule.codes)] = CODES
        ruled[maintained[:, channel]] = MAINTENANCE
        if rule.max_change < inf:
            accepted = np.isfinite(column) & ((ruled == 0) | (ruled == LONGEST_REST))
            last = -1
            for row in np.flatnonzero(accepted):
                far = abs(column[row] - column[last]) > rule.max_change * (row - last)
                if last >= rows.first[row] and far:
                    ruled[row] = MAX_CHANGE
                else:
                    last = row
    return broken


def needed_channels(rules: Sequence[ChannelRules]) -> Array:
    """Whether a channel needs another one, directly or through others, bool `[C, C]`."""
    needs = np.zeros((len(rules), len(rules)), bool)
    for row, own in zip(needs, rules, strict=True):
        row[:] = not own.leave_alone and [
            any(fnmatchcase(other.name, name) for name in own.needs) for other in rules
        ]
    while (further := needs @ needs & ~needs).any():
        needs |= further
    return needs & ~np.eye(len(rules), dtype=bool)


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
    for channel, (column, values) in enumerate(zip(guard.columns_, normal.T, strict=True)):
        finite = values[np.isfinite(values)]
        low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 0.0)
        room = (high - low) * guard.config_.online_range
        change = np.nan_to_num(np.abs(np.diff(values))).max(initial=0.0)
        codes = ", ".join(f"{code:.10g}" for code in guard.levels_.codes[channel])
        limit, comment = guard.levels_.run_limit[channel] - 1, f"between {low:.6g} and {high:.6g}"
        ranged = f"  range: [{low - room:.6g}, {high + room:.6g}]    # values were {comment}"
        rules = {
            ranged: room > 0,
            f"  # longest_rest: {limit} rows    # longest normal run of equal values": True,
            f"  codes: [{codes}]    # stand for a gap": codes,
            f"  # max_change: {change:.4g}/row    # largest normal change": change,
            "  leave_alone: false": not codes and not room > 0,
        }
        lines += ["", yaml.safe_dump({column: None}, width=inf).split(" null")[0].strip()]
        lines += [line for line, wanted in rules.items() if wanted]
    return "\n".join(lines) + "\n"
