"""Guard: what was learnt from training rows, ready to judge and repair tables, rows and windows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import copy
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from sacm.errors import ArgumentError, SACMError
from sacm.quality import checks
from sacm.quality.config import FAIL, KINDS, REPAIRS, Fixed, GuardConfig, Kind
from sacm.quality.predictor import Array, find_segments
from sacm.quality.recording import STEP_ROOM, Recording, read_recording
from sacm.quality.repair import RepairModel
from sacm.quality.result import Quality
from sacm.quality.rules import (
    MAINTENANCE,
    NEEDS,
    RULE_KINDS,
    RULES,
    Rules,
    apply_rules,
    needed_channels,
    read_time,
    rows_of_rule,
)
from sacm.quality.windows import OTHER_VERSION, WindowGuard, fit_window_guard
from sacm.types import GAP_CODES


@dataclass(eq=False)
class Guard:
    """Finds broken values and repairs them, by what training rows look like.

    Args:
        rules: A rules file or a dict of rules; see `sacm.quality.rules`.
        false_events: Expected false fail events in 10,000 normal values; every cut follows from it.
        window: Rows that `check`, `stream` and `module` look back on; None judges tables only.
        repair: Which grades are repaired: "fail", "all" (suspect values too) or "none".
        keep: Events that stay as measured: a table of `to_frame` with its column `keep` filled in.
        config: All thresholds; `false_events` replaces its own.

    Attributes:
        columns_: Names of the channels.
        n_features_in_: Number of channels.
        step_: Seconds between training rows; None without times.
        unjudged_: Channels that some checks cannot judge, with the reason.

    Example:
        >>> import numpy as np
        >>> rows = np.sin(np.arange(900) / 4) + np.random.default_rng(0).normal(0, 0.05, 900)
        >>> guard = Guard(window=48).fit(rows[:800])
        >>> rows[860] = 9.0
        >>> bool(abs(guard.transform(rows[800:])[60]) < 2)
        True
    """

    rules: Any = None
    false_events: float = 1.0
    window: int | None = 96
    repair: str = "fail"
    keep: Any = None
    config: GuardConfig | None = None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments this guard was made with, by name; `deep` is there for scikit-learn."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def set_params(self, **params: Any) -> Self:
        """Change arguments by name; they count from the next `fit` on."""
        names = self.get_params()
        if unknown := params.keys() - names:
            raise ArgumentError(f"Guard has no {min(unknown)!r}: it has {', '.join(names)}.")
        vars(self).update(params)
        return self

    def fit(self, data: Any, y: None = None) -> Self:
        """Learn from training rows, which may be broken in up to a third of their values.

        Args:
            data: A frame, array or tensor `[T, C]`, file, long table or data set; of a data set
                only the training part is used.
            y: Not used; there for scikit-learn.
        """
        self._learn(read_recording(data), self.window)
        return self

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import BaseEstimator

        return BaseEstimator().__sklearn_tags__()

    def set_output(self, *, transform: Any = None) -> Self:
        """Do nothing: frames stay frames, and arrays arrays; there for scikit-learn."""
        return self

    def fit_inspect(self, data: Any) -> Quality:
        """Learn from the training rows of data, then judge all rows, each by those around it."""
        recording = read_recording(data)
        found = self._learn(recording, None)
        if recording.parts().segments == recording.segments == recording.train:
            return self._repair_table(recording, np.arange(len(self.columns_)), *found)
        return self.inspect(recording)

    def _learn(self, recording: Recording, window: int | None) -> tuple[Array, Array, Array]:
        """Learn from the training rows; flags, grades and broken rules of these rows."""
        if self.repair not in REPAIRS:
            raise ArgumentError(f"repair must be {', '.join(REPAIRS)}, got {self.repair!r}.")
        asked, least = self.window, Fixed.shortest_window
        if asked is not None and not (isinstance(asked, int | np.integer) and asked >= least):
            raise ArgumentError(f"window must be a number of at least {least} rows, got {asked!r}.")
        self.config_ = replace(self.config or GuardConfig(), false_events=self.false_events)
        self.columns_, self.step_ = recording.columns, recording.step
        self.n_features_in_ = len(recording.columns)
        self._set_rules(Rules.read(self.rules, self.keep))
        at, rows = recording.training_part()
        values = np.asarray(recording.values[at], np.float64)
        ruled, kept = (array[at] for array in self._apply_rules(recording, recording.values))
        self.levels_, flags, grades = checks.judge(values, rows, self.config_, ruled)
        flags, grades, ruled = self._combine(flags, grades, ruled, kept, values)
        fail = grades == FAIL
        self.repair_ = RepairModel.learn(values, fail, rows, self.levels_.season)
        few = (np.isfinite(values) & ~fail).sum(0) < self.config_.fewest_values
        self.unjudged_ = {
            self.columns_[c]: "it has too few values" if few[c] else "it seldom changes"
            for c in np.flatnonzero(~self.levels_.judged)
        }
        self.window_guard_ = None
        if window is not None:
            options = int(window), rows, self.channel_rules_, self.levels_, self.config_
            self.window_guard_ = fit_window_guard(self.repair_.fill(values, fail, rows), *options)
        return flags, grades, ruled

    def _set_rules(self, rules: Rules) -> None:
        """Obey rules; which kinds are looked for in each channel, `[kinds, C]`."""
        self.rules_ = rules
        found = self.channel_rules_ = rules.of_channels(self.columns_, self.step_)
        self._range = np.array([own.range for own in found]).T  # [2, C]
        self._rested = np.array([own.longest_rest is not None for own in found])
        self._alone = np.array([own.leave_alone for own in found])
        self._needs = needed_channels(found)
        self._wanted = np.array([[kind in own.kinds for kind in KINDS] for own in found]).T
        self._wanted &= ~self._alone
        # With the rule, it alone says what is stuck or a code.
        self._wanted[Kind.STUCK] &= ~self._rested
        self._wanted[Kind.CODE] &= [not own.codes for own in found]
        self._wanted[: Kind.MISSING + 1] = True

    def _apply_rules(self, recording: Recording, values: Array) -> tuple[Array, Array]:
        """Which rule each of the values `[T, C]` breaks, and which are events to keep."""
        rules, times = self.channel_rules_, recording.times
        kept = rows_of_rule("keep", rules, times, np.arange(len(values)))
        return np.where(self._alone, 0, apply_rules(values, recording.rows, rules, times)), kept

    def breaks_rules(self, data: Any) -> Array:
        """Which values `[T, C]` of rows with the channels of the fit break a rule, bool."""
        given, _, values = self._read(data)
        ruled, kept = self._apply_rules(given, values)
        return (ruled > 0) & ~kept

    def with_rules(self, rules: Any = None, keep: Any = None) -> Self:
        """A copy that judges tables by other rules; None keeps those that it has."""
        self._check_fitted()
        other = copy(self)
        other._set_rules(Rules.read(self.rules_ if rules is None else rules, keep))
        return other

    def _combine(
        self, flags: Array, grades: Array, ruled: Array, kept: Array, values: Array
    ) -> tuple[Array, Array, Array]:
        """Flags, grades and broken rules `[T, C]`, with what rules say about the checks."""
        kept = kept & np.isfinite(values)
        free = ~np.take_along_axis(self._wanted, flags.astype(int), 0) | kept
        ruled = np.where(kept | ((flags == Kind.MISSING) & (ruled != MAINTENANCE)), 0, ruled)
        flags = np.where(ruled > 0, np.array(RULE_KINDS)[ruled], np.where(free, 0, flags))
        grades = np.where((ruled > 0) & (ruled != NEEDS), FAIL, np.where(free, 0, grades))
        # A broken value that loggers write for a gap is a code, also if training rows had none.
        coded = (grades == FAIL) & (ruled == 0) & np.isin(values, GAP_CODES)
        flags = np.where(coded, Kind.CODE, flags)
        worst = self._worst_needed(flags, grades)
        lacking = (worst > grades) & ~kept
        flags, ruled = np.where(lacking, Kind.RULE, flags), np.where(lacking, NEEDS, ruled)
        grades = np.where(lacking, worst, grades)
        return flags.astype(np.uint8), grades.astype(np.uint8), ruled.astype(np.uint8)

    def _worst_needed(self, flags: Array, grades: Array) -> Array:
        """The worst grade `[T, C]` of the channels that each one needs; a gap says nothing."""
        worst, gap = np.zeros_like(grades), (flags == Kind.MISSING) | (flags == Kind.CODE)
        for channel in np.flatnonzero(self._needs.any(1)):
            needed = self._needs[channel]
            worst[:, channel] = np.where(gap[:, needed], 0, grades[:, needed]).max(1)
        return worst

    def inspect(self, data: Any) -> Quality:
        """Judge rows by what was learnt, each by the rows around it; no split by another."""
        given, order, values = self._read(data)
        ruled, kept = self._apply_rules(given, values)
        found = checks.judge(values, given.parts(), self.config_, ruled, self.levels_)
        return self._repair_table(given, order, *self._combine(*found[1:], ruled, kept, values))

    def _repair_table(
        self, given: Recording, order: Array, flags: Array, grades: Array, ruled: Array
    ) -> Quality:
        """What was found in a table, with its repairs."""
        values = np.asarray(given.values[:, order], np.float64)
        changed = grades >= REPAIRS[self.repair]
        bad = changed | (grades == FAIL)
        repaired = self.repair_.fill(values, bad, given.parts())
        uncertainty = self.repair_.uncertainty(bad | ~np.isfinite(values))
        for channel, rules in enumerate(self.channel_rules_):
            for first, stop in zip(*find_segments(changed[:, channel]), strict=True):
                changed[first:stop, channel] = stop - first <= rules.longest_gap
        return self._quality(given, order, flags, grades, ruled, repaired, changed, uncertainty)

    def _quality(self, given: Recording, order: Array, *found: Array) -> Quality:
        """What was found, with channels as they were given, repaired where they are changed."""
        flags, grades, ruled, repaired, changed, unsure = (a[:, np.argsort(order)] for a in found)
        repairs = np.where(changed, repaired, given.values), changed, unsure * changed
        return Quality(given, flags, grades, ruled, *repairs, self.config_, dict(self.unjudged_))

    def check(self, data: Any) -> Quality:
        """Judge new rows by themselves and earlier rows: nothing after a row changes its answer.

        Args:
            data: Rows as `fit` takes them, with its time step; named channels in any order.
        """
        given, order, values = self._read(data, same_step=True)
        parts = []
        for segment in given.segments:
            at = slice(segment.start, segment.stop)
            times = None if given.times is None else given.times[at]
            parts.append(GuardStream(self, at.start).judge(values[at].astype(np.float64), times))
        return self._quality(given, order, *map(np.concatenate, zip(*parts, strict=True)))

    def transform(self, data: Any) -> Any:
        """The repaired rows of `check`, in the form in which they came."""
        return self.check(data).repaired

    def fit_transform(self, data: Any, y: None = None) -> Any:
        """Learn from rows, and repair these rows causally."""
        return self.fit(data).transform(data)

    def stream(self) -> GuardStream:
        """Judge rows as they come, one at a time; agrees with `check`."""
        return GuardStream(self)

    def module(self) -> WindowGuard:
        """The repair of windows `[B, window, C]` as a torch module."""
        self._check_fitted()
        if self.window_guard_ is None:
            raise ArgumentError("this guard judges tables only: make it with a window and fit it.")
        return self.window_guard_

    def _read(self, data: Any, same_step: bool = False) -> tuple[Recording, Array, Array]:
        """New rows, where the channels of the fit are in them `[C]`, and their values `[T, C]`."""
        self._check_fitted()
        # Of a frame only these channels are read, also one without any value.
        known = set(self.columns_) <= set(getattr(data, "columns", ()))
        given = read_recording(data, reading={"columns": self.columns_} if known else None)
        order = given.order(self.columns_, self.step_ if same_step else None)
        return given, order, given.values[:, order]

    def _check_fitted(self) -> None:
        if not hasattr(self, "levels_"):
            raise ArgumentError("this Guard is not fitted: call fit with training rows first.")

    def save(self, path: str | Path) -> None:
        """Write everything that was learnt to one safetensors file, whole or not at all."""
        from sacm.files import write_weights

        self._check_fitted()
        if Path(path).is_dir():
            raise ArgumentError(f"{path} is a folder: name a file in it.")
        learnt = {"levels": self.levels_, "repair_model": self.repair_, "unjudged": self.unjudged_}
        record = learnt | {
            "options": [self.window, self.repair],
            "config": asdict(self.config_),
            "rules": {"rules": self.rules_.written, "kept": self.rules_.kept},
            "columns": self.columns_,
            "step": self.step_,
        }
        tensors = {} if self.window_guard_ is None else self.window_guard_.state_dict()
        write_weights(Path(path), tensors, metadata={"guard": json.dumps(record, default=_plain)})

    @classmethod
    def load(cls, path: str | Path, content: Any = None) -> Self:
        """Read a guard that `save` wrote; `content` is its tensors and metadata, if read before."""
        from sacm.files import read_metadata, read_weights

        tensors, text = content or (read_weights(Path(path)), read_metadata(Path(path)))
        try:
            record = json.loads(text["guard"])
            config, (window, repair) = GuardConfig(**record["config"]), record["options"]
            rules = Rules(record["rules"]["rules"], tuple(map(tuple, record["rules"]["kept"])))
            guard = cls(rules, config.false_events, window, repair, config=config)
            guard.columns_, guard.step_ = tuple(record["columns"]), record["step"]
            guard.config_, guard.n_features_in_ = config, len(guard.columns_)
            guard._set_rules(rules)
            guard.levels_ = levels = checks.Levels(len(guard.columns_))
            vars(levels).update(_arrays(record["levels"]))
            if isinstance(levels.model, dict):
                levels.model = RepairModel(**_arrays(levels.model))
            guard.repair_ = RepairModel(**_arrays(record["repair_model"]))
            guard.unjudged_ = record["unjudged"]
            guard.window_guard_ = WindowGuard(tensors).eval() if tensors else None
        except (KeyError, TypeError, ValueError, AttributeError):
            why = f"it is no guard, it is damaged, or {OTHER_VERSION}"
            raise SACMError(f"{path} cannot be read: {why}.") from None
        return guard


def _plain(value: Any) -> Any:
    """What JSON cannot write, as lists, dicts and text."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return vars(value) if isinstance(value, checks.Levels | RepairModel) else str(value)


def _arrays(record: dict[str, Any]) -> dict[str, Any]:
    """Lists as arrays, but for those that differ in length by channel."""
    lists = [k for k, v in record.items() if isinstance(v, list) and k not in ("codes", "rests")]
    return record | {name: np.asarray(record[name]) for name in lists}


class StreamRow(NamedTuple):
    """One row of a stream: values with what is broken repaired, flags and grades, each `[C]`."""

    values: Array
    flags: Array
    grades: Array


class GuardStream:
    """Judges rows as they come, each by the last `window` rows; made by `Guard.stream`.

    Example:
        >>> import numpy as np
        >>> rows = np.sin(np.arange(900) / 4) + np.random.default_rng(0).normal(0, 0.05, 900)
        >>> stream = Guard(window=48).fit(rows).stream()
        >>> [int(stream.push([value]).grades[0]) for value in (*rows[:60], 9.0)][-1]
        2
    """

    def __init__(self, guard: Guard, first: int = 0) -> None:
        self.guard, module = guard, guard.module()
        self._rows = np.full((module.length, module.channels), np.nan)
        self._gap, self._count = np.zeros(module.channels, int), first
        self._time: np.datetime64 = np.datetime64("NaT")

    def push(self, row: Any, time: Any = None) -> StreamRow:
        """Judge the next row.

        Args:
            row: Values of the channels in order, or a mapping by name.
            time: Time of the row; needed for rules by time alone.
        """
        values = self._read(row)
        times = None if time is None else np.array([self._follow(time)])
        judged = self.judge(values[None], times)
        flags, grades, _, repaired, changed, _ = (array[0] for array in judged)
        return StreamRow(np.where(changed, repaired, values), flags, grades)

    def judge(self, values: Array, times: Array | None) -> tuple[Array, ...]:
        """Flags, grades, broken rules, repairs, what is repaired, uncertainty of rows `[n, C]`."""
        guard, rules, count = self.guard, self.guard.channel_rules_, len(values)
        module, numbers = guard.module(), self._count + np.arange(count)
        outside = rows_of_rule("maintenance", rules, times, numbers)
        kept = rows_of_rule("keep", rules, times, numbers)
        padded = np.concatenate([self._rows[1:], np.where(outside, np.nan, values)])
        windows = sliding_window_view(padded, module.length, axis=0).swapaxes(1, 2)
        together = max(1, Fixed.most_entries // self._rows.size // Fixed.fewest_windows)
        parts = [
            module.judge_last(windows[first : first + together], min(REPAIRS[guard.repair], FAIL))
            for first in range(0, count, together)
        ]
        flags, grades, repaired, since = map(np.concatenate, zip(*parts, strict=True))
        (low, high), ruled, coded = guard._range, flags == Kind.RULE, flags == Kind.CODE
        for channel in np.flatnonzero(coded.any(0)):
            coded[:, channel] &= np.isin(values[:, channel], rules[channel].codes)
        broken = {
            "maintenance": outside,
            "range": ruled & ((values < low) | (values > high)),
            "codes": coded,
            "longest_rest": (flags == Kind.STUCK) & guard._rested,
            "needs": ruled & (guard._worst_needed(flags, grades) >= grades),
            "max_change": ruled,
        }
        ruled = np.select([*broken.values()], [RULES.index(rule) for rule in broken], 0)
        flags, grades, ruled = guard._combine(flags, grades, ruled, kept, values)
        changed, steps = grades >= REPAIRS[guard.repair], np.arange(1, count + 1)[:, None]
        gap = steps - np.maximum.accumulate(np.where(changed, -self._gap, steps), 0)
        self._rows, self._gap, self._count = padded[-module.length :], gap[-1], self._count + count
        changed &= gap <= [rule.longest_gap for rule in rules]
        return flags, grades, ruled, repaired, changed, guard.repair_.errors_after(since)

    def _read(self, row: Any) -> Array:
        """The values of a row in the order of the channels."""
        columns = self.guard.columns_
        try:
            row = [row[column] for column in columns] if isinstance(row, Mapping) else row
            values = np.asarray(row, np.float64).ravel()
        except KeyError as error:
            raise ArgumentError(f"the row lacks {error}; it has {', '.join(row)}.") from None
        except (TypeError, ValueError):
            raise ArgumentError(f"the row must hold numbers, got {row!r}.") from None
        if len(values) != len(columns):
            raise ArgumentError(f"the row has {len(values)} values for {len(columns)} channels.")
        return np.where(np.isfinite(values), values, np.nan)

    def _follow(self, time: Any) -> np.datetime64:
        """The time of the next row, which must follow the last one by whole steps."""
        try:
            here = read_time(time)
        except ValueError:
            raise ArgumentError(f"time = {time!r} is no time.") from None
        seconds = float((here - self._time) / np.timedelta64(1, "s"))  # NaN for the first row
        if seconds <= 0:
            raise ArgumentError(f"time = {time} does not follow {self._time}.")
        step = self.guard.step_ or seconds
        whole = np.maximum(np.rint(seconds / step), 1)
        if abs(seconds / step - whole) > STEP_ROOM * whole:
            why = f"comes {seconds:g} s after the last row; training rows came every {step:g} s"
            raise ArgumentError(f"time = {time} {why}.")
        self._time = here
        return here

    def state_dict(self) -> dict[str, Any]:
        """The state as plain values for JSON."""
        rows = [[None if v != v else v for v in row] for row in self._rows.tolist()]
        gap, time = self._gap.tolist(), str(self._time)
        return {"rows": rows, "gap": gap, "count": self._count, "time": time}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was taken."""
        try:
            rows = np.array(state["rows"], np.float64).reshape(self._rows.shape)
            gap = np.array(state["gap"], int).reshape(self._gap.shape)
            count, time = int(state["count"]), np.datetime64(state["time"], "ns")
        except (KeyError, TypeError, ValueError):
            why = "is none that state_dict of a stream of this guard gave"
            raise ArgumentError(f"the state {why}.") from None
        self._rows, self._gap, self._count, self._time = rows, gap, count, time
