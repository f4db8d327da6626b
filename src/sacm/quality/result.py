"""Quality: what is broken or unusual in a table, where, and what it probably was."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sacm.errors import list_names
from sacm.quality.config import FAIL, GRADES, KINDS, SUSPECT, VALUES, GuardConfig
from sacm.quality.predictor import Array, find_segments, interpolate, robust_scale
from sacm.quality.recording import STEP_ROOM, Recording
from sacm.quality.rules import RULES, UNITS
from sacm.reports.table import Table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

TIME = "time"  # the channel of events of the time axis
TIME_KINDS = ("duplicate rows", "missing rows", "jitter")
_WORST = 5
_MOST_SEVERE = 10.0  # deviations; beyond it an event is as bad as it can be


class QualityEvent(NamedTuple):
    """A segment of one kind and grade in one channel."""

    channel: str  # its name; "time" for an event of the time axis
    kind: str  # one of `KINDS`; of the time axis one of `TIME_KINDS`
    grade: int  # 1 suspect, 2 fail
    first: int  # first row, counted from 0 in order of time
    last: int  # last row
    severity: float  # largest distance, in deviations, from the repair or the line across
    rule: str  # the rule that was broken, empty if none
    series: str
    first_time: Any  # time of the first row, where times are known
    last_time: Any

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.last - self.first + 1


@dataclass(frozen=True, eq=False)
class Quality:
    """What `sacm.inspect` found broken or unusual in a table; rows are in order of time."""

    recording: Recording  # the rows as they were read
    flags: Array  # [T, C] uint8, positions in `kinds`; 0 is a normal value
    grades: Array  # [T, C] uint8: 0 normal, 1 suspect, 2 fail
    rules: Array  # [T, C] uint8: which rule was broken, a position in `sacm.quality.rules.RULES`
    values: Array  # [T, C] with what is repaired in place
    changed: Array  # [T, C] what was repaired
    uncertainty: Array  # [T, C] deviation to expect of repaired values, in the data's units; else 0
    config: GuardConfig  # the thresholds
    unjudged: dict[str, str]  # channels that some checks cannot judge, with the reason
    kinds: tuple[str, ...] = KINDS  # names of the flags

    @property
    def repaired(self) -> Any:
        """The data with repaired values in place, in the form in which they came."""
        return self.recording.restore(self.values, self.changed)

    @cached_property
    def reliability(self) -> Array:
        """A weight of each value, `[T, C]`: 1 normal, `suspect_weight` suspect, 0 broken."""
        return np.choose(self.grades, (1.0, self.config.suspect_weight, 0.0))

    @cached_property
    def events(self) -> list[QualityEvent]:
        """Everything that was found, by first row."""
        recording, events = self.recording, time_events(self.recording)
        times: Any = [None] * len(self.flags) if recording.times is None else recording.times
        starts = recording.rows.first
        names = dict(zip((s.start for s in recording.segments), recording.labels, strict=True))
        line = interpolate(recording.values, self.flags > 0)
        expected = np.where(self.changed, self.values, line)
        codes = (self.flags.astype(np.int64) * len(GRADES) + self.grades) * len(RULES) + self.rules
        for channel in np.flatnonzero(codes.any(0)):
            measured, code = recording.values[:, channel], codes[:, channel]
            normal = measured[(self.grades[:, channel] != FAIL) & np.isfinite(measured)]
            scale = robust_scale(normal[:, None].astype(np.float64))[0] if len(normal) else 1.0
            distance = np.abs(measured - expected[:, channel]) / scale
            ends = np.flatnonzero((np.diff(code) != 0) | (np.diff(starts) != 0)) + 1
            for i, j in pairwise([0, *ends.tolist(), len(code)]):
                if code[i]:
                    found = KINDS[self.flags[i, channel]], int(self.grades[i, channel]), i, j - 1
                    far = float(np.nan_to_num(np.fmax.reduce(distance[i:j]), nan=np.inf))
                    place = RULES[self.rules[i, channel]], names[starts[i]], times[i], times[j - 1]
                    events.append(QualityEvent(recording.columns[channel], *found, far, *place))
        return sorted(events, key=lambda event: (event.first, event.channel))

    @property
    def share(self) -> float:
        """Share of all values that are a fail."""
        return float((self.grades == FAIL).mean())

    def shares(self) -> dict[str, dict[str, float]]:
        """Share of each channel's values by kind, for the kinds that occur."""
        codes = np.unique(self.flags[self.flags > 0])
        return {
            column: {KINDS[code]: float((self.flags[:, c] == code).mean()) for code in codes}
            for c, column in enumerate(self.recording.columns)
        }

    def overview(self) -> dict[str, Any]:
        """What was found in a few plain numbers, as a run keeps it."""
        return {
            "name": self.recording.name,
            "rows": len(self.flags),
            "share": self.share,
            "suspect_share": float((self.grades == SUSPECT).mean()),
            "shares": self.shares(),
            "unjudged": dict(self.unjudged),
        }

    def sentences(self) -> list[str]:
        """What was found, in plain words; the first sentence is the verdict."""
        rows, channels = self.flags.shape
        size, name = f"{rows:,} rows of {_count(channels, 'channel')}", self.recording.name
        counts = Counter(self.flags[self.grades == FAIL].tolist()).most_common()
        kinds = ", ".join(f"{format_share(n / self.flags.size)} {KINDS[k]}" for k, n in counts)
        broken = f"{format_share(self.share)} of the values in {size} are broken: {kinds}."
        sentences = [f"{name}: {broken if kinds else f'nothing broken was found in {size}.'}"]
        if unusual := format_share((self.grades == SUSPECT).mean()):
            sentences.append(f"{unusual} of the values are unusual and may be real.")
        for kind in TIME_KINDS:
            places = [event for event in time_events(self.recording) if event.kind == kind]
            if places:
                what = f"{sum(event.severity for event in places):,.0f} {kind}"
                what = "Rows are not evenly spaced" if kind == "jitter" else what
                at = f"{_count(len(places), 'place')}, first after {_short(places[0].first_time)}"
                sentences.append(f"Time axis: {what} at {at}.")
        if self.unjudged:
            names = list_names([f"{name!r} ({why})" for name, why in self.unjudged.items()])
            sentences.append(f"Not judged for spikes, bursts and shifts: {names}.")
        return [*sentences, *self.recording.notes]

    def share_table(self) -> Table:
        """Shares by channel and kind, of the channels with an event."""
        shares = self.shares()
        rows = {name: (sum(share.values()), *share.values()) for name, share in shares.items()}
        lines = [(name, *map(format_share, row)) for name, row in rows.items() if row[0]]
        return Table(("channel", "flagged", *next(iter(shares.values()))), tuple(lines))

    def worst_events(self, count: int = _WORST) -> list[QualityEvent]:
        """The events that matter most: broken before unusual, severe and long ones first."""
        events = [event for event in self.events if event.channel != TIME]
        events.sort(key=lambda e: (-e.grade, -min(e.severity, _MOST_SEVERE) * np.sqrt(e.rows)))
        return events[:count]

    def event_table(self, count: int = _WORST) -> Table:
        """The worst events, one row each."""
        lines = []
        for event in self.worst_events(count):
            ends = str(event.first + 1), str(event.last + 1)
            if event.first_time is not None:
                ends = _short(event.first_time), _short(event.last_time)
            kind = f"{event.kind} ({event.rule})" if event.rule else event.kind
            far = f"{event.severity:.1f}" if np.isfinite(event.severity) else "unknown"
            lines.append((event.channel, kind, GRADES[event.grade], *ends, f"{event.rows:,}", far))
        headings = ("channel", "kind", "grade", "first", "last", "rows", "severity")
        return Table(headings, tuple(lines), words=headings.index("rows"))

    def summary(self) -> str:
        """What was found as text: sentences, shares by channel, the worst events."""
        blocks = ["\n".join(self.sentences())]
        if self.flags.any():
            ending = f", the {_WORST} worst:" if len(self.events) > _WORST else ":"
            heading = _count(len(self.events), "event") + ending
            blocks += [self.share_table().plain(), f"{heading}\n{self.event_table().plain()}"]
        return "\n\n".join(blocks)

    __str__ = summary

    def to_frame(self) -> pd.DataFrame:
        """One row an event, rows counted from 1; with `keep` filled in, `keep=` takes it back."""
        import pandas as pd

        frame = pd.DataFrame(self.events, columns=list(QualityEvent._fields)).assign(keep="")
        frame["grade"] = [GRADES[grade] for grade in frame["grade"]]
        frame.insert(list(frame).index("severity"), "rows", [event.rows for event in self.events])
        frame[["first", "last"]] += 1
        unused = [] if self.recording.times is not None else ["first_time", "last_time"]
        unused += ["series"] if len(set(self.recording.labels)) == 1 else []
        return frame.drop(columns=unused)

    def plot(self) -> Figure:
        """Draw all channels over time, coloured by what was found."""
        from sacm.quality.page import draw_overview

        return draw_overview(self)

    def report(self, path: str | Path) -> None:
        """Write one self-contained HTML page: overview, worst events with their repair, shares."""
        from sacm.files import write_text
        from sacm.quality.page import quality_page

        write_text(Path(path), quality_page(self))


def time_events(recording: Recording) -> list[QualityEvent]:
    """Missing rows, duplicate rows and jitter of the time axis, as suspect events."""
    times, step, events = recording.times, recording.step, list[QualityEvent]()
    if times is None or step is None:
        return events
    steps: Array = np.diff(times) / np.timedelta64(1, "s") / step
    if step == UNITS["d"] and np.is_busday(days := times.astype("datetime64[D]")).all():
        steps = np.busday_count(days[:-1], days[1:]) + 0.0  # weekends are no gaps
    for segment, label in zip(recording.segments, recording.labels, strict=True):
        gaps = steps[segment.start : segment.stop - 1]
        missing, uneven = gaps > 1.5, np.abs(gaps - np.round(gaps)) > STEP_ROOM
        uneven &= ~missing & (gaps > 0) & (step <= UNITS["d"] * 25)  # months differ in length
        for kind, mask in zip(TIME_KINDS, (gaps == 0, missing, uneven), strict=True):
            for first, stop in zip(*find_segments(mask), strict=True):
                i, j = segment.start + int(first), segment.start + int(stop)
                count = (np.round(gaps) - 1)[first:stop].sum() if kind == "missing rows" else j - i
                place = i, j, float(count), "", label, times[i], times[j]
                events.append(QualityEvent(TIME, kind, SUSPECT, *place))
    return events


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' if number > 1 else ''}"


def format_share(share: float) -> str:
    """A share as text, with as many digits as it needs; empty for 0."""
    percent = f"{100 * share:.2g} %" if share < 1 / 10 else f"{share:.0%}".replace("%", " %")
    return "" if share == 0 else "< 0.01 %" if share < 1 / VALUES else percent


def _short(time: np.datetime64) -> str:
    """A time without the parts that are zero."""
    text = str(time.astype("datetime64[s]")).replace("T", " ")
    return text.removesuffix(" 00:00:00").removesuffix(":00")
