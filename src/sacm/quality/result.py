"""Quality: what is broken or unusual in a table, where, and what it probably was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sacm.errors import ArgumentError
from sacm.quality.config import FAIL, KINDS, SUSPECT, GuardConfig
from sacm.quality.predictor import Array, find_segments, robust_scale
from sacm.quality.recording import Recording
from sacm.quality.rules import RULES
from sacm.reports.table import Table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

GRADES = ("normal", "suspect", "fail")
REPAIRS = ("fail", "all", "none")
"""What `repair=` takes: which grades are replaced by their repair."""
PHRASES = {
    "missing": "missing",
    "code": "a code for a gap",
    "stuck": "stuck",
    "spike": "spikes",
    "burst": "in bursts of noise",
    "shift": "at another level for a while",
    "rule": "against a rule",
}
_WORST, _NAMED = 5, 6
_LARGEST_SEVERITY = 10.0  # deviations; beyond it an event is as bad as it can be


@dataclass(frozen=True)
class QualityEvent:
    """A stretch of one kind and grade in one channel.

    Attributes:
        channel: Name of the channel; "time" for an event of the time axis.
        kind: One of `KINDS`; of the time axis "missing rows", "duplicate rows" or "jitter".
        grade: 1 suspect, 2 fail.
        first: First row, counted from 0 in order of time.
        last: Last row.
        severity: Largest distance from the repair, in the channel's deviations.
        rule: The rule that was broken, empty if none.
        series: Name of the series, where there are several.
        first_time: Time of the first row, where times are known.
        last_time: Time of the last row.
    """

    channel: str
    kind: str
    grade: int
    first: int
    last: int
    severity: float
    rule: str = ""
    series: str = ""
    first_time: Any = None
    last_time: Any = None

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.last - self.first + 1


@dataclass(frozen=True, eq=False)
class Quality:
    """What is broken or unusual in a table; rows are in order of time.

    Attributes:
        recording: The rows as they were read.
        flags: `[T, C]` uint8, positions in `kinds`; 0 is a normal value.
        grades: `[T, C]` uint8: 0 normal, 1 suspect, 2 fail.
        rules: `[T, C]` uint8: which rule was broken, a position in `sacm.quality.rules.RULES`.
        values: `[T, C]` with what is repaired in place.
        changed: `[T, C]` what was repaired.
        uncertainty: `[T, C]` deviation to expect of repaired values, in the data's units; else 0.
        config: The thresholds.
        unjudged: Channels that some checks cannot judge, with the reason.
        kinds: Names of the flags.

    Example:
        >>> import numpy as np, sacm
        >>> quality = sacm.inspect(np.random.default_rng(0).normal(size=(300, 1)))
        >>> quality.flags.shape
        (300, 1)
    """

    recording: Recording
    flags: Array
    grades: Array
    rules: Array
    values: Array
    changed: Array
    uncertainty: Array
    config: GuardConfig
    unjudged: dict[str, str]
    kinds: tuple[str, ...] = KINDS

    @property
    def repaired(self) -> Any:
        """The data with repaired values in place, in the form in which they came."""
        return self.recording.restore(self.values, self.changed)

    @cached_property
    def scales(self) -> Array:
        """Robust deviation of each channel `[C]` over its normal values."""
        normal = (self.grades != FAIL) & np.isfinite(self.recording.values)
        columns = [
            self.recording.values[normal[:, c], c].astype(np.float64)
            for c in range(self.flags.shape[1])
        ]
        return np.array([robust_scale(c[:, None])[0] if len(c) else 1.0 for c in columns])

    @cached_property
    def reliability(self) -> Array:
        """How far to trust each value, `[T, C]` in [0, 1]; a weight for a training loss.

        Normal values count 1, suspect ones `suspect_weight`, broken ones 0, repaired or not.
        """
        return np.choose(self.grades, (1.0, self.config.suspect_weight, 0.0))

    @cached_property
    def events(self) -> list[QualityEvent]:
        """Everything that was found, by first row."""
        found = time_events(self.recording)
        distance = np.abs(self.recording.values - self.values) / self.scales
        for channel, name in enumerate(self.recording.columns):
            code = (
                self.flags[:, channel].astype(np.int64) * len(GRADES) + self.grades[:, channel]
            ) * len(RULES) + self.rules[:, channel]
            for segment, label in zip(self.recording.segments, self.recording.labels, strict=True):
                part = code[segment.start : segment.stop]
                for first, stop in _equal_stretches(part):
                    rows = slice(segment.start + first, segment.start + stop)
                    far = distance[rows, channel]
                    known = far[np.isfinite(far)]
                    found.append(
                        self._event(
                            name,
                            rows,
                            channel,
                            label,
                            float(known.max()) if len(known) else float("inf"),
                        )
                    )
        return sorted(found, key=lambda event: (event.first, event.channel))

    def _event(
        self, name: str, rows: slice, channel: int, label: str, severity: float
    ) -> QualityEvent:
        times, at = self.recording.times, rows.start
        ends = (None, None) if times is None else (times[at], times[rows.stop - 1])
        return QualityEvent(
            name,
            KINDS[self.flags[at, channel]],
            int(self.grades[at, channel]),
            at,
            rows.stop - 1,
            severity,
            RULES[self.rules[at, channel]],
            label,
            *ends,
        )

    @property
    def share(self) -> float:
        """Share of all values that are a fail."""
        return float((self.grades == FAIL).mean())

    def shares(self) -> dict[str, dict[str, float]]:
        """Share of each channel's values by kind, for the kinds that occur."""
        occurring = [code for code in range(1, len(KINDS)) if (self.flags == code).any()]
        return {
            column: {KINDS[code]: float((self.flags[:, c] == code).mean()) for code in occurring}
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
        size = f"{rows:,} rows of {channels} channel{'s' if channels > 1 else ''}"
        name, unusual = self.recording.name, float((self.grades == SUSPECT).mean())
        if not self.share:
            verdict = f"{name}: nothing broken was found in {size}."
        else:
            counts = Counter(self.flags[self.grades == FAIL].tolist())
            parts = [
                f"{format_share(n / self.flags.size)} {PHRASES[KINDS[code]]}"
                for code, n in counts.most_common()
            ]
            verdict = (
                f"{name}: {format_share(self.share)} of the values in {size} are broken: "
                f"{', '.join(parts)}."
            )
        found = [verdict]
        if unusual:
            found.append(
                f"{format_share(unusual)} of the values are unusual and may be real: they are "
                "reported and not repaired."
            )
        found += _time_sentences(time_events(self.recording))
        return [*found, *self._unjudged_sentences(), *self.recording.notes]

    def _unjudged_sentences(self) -> list[str]:
        """One sentence for each reason why channels were not judged in full."""
        reasons: dict[str, list[str]] = {}
        for column, reason in self.unjudged.items():
            reasons.setdefault(reason, []).append(repr(column))
        sentences = []
        for reason, columns in reasons.items():
            more = f" and {len(columns) - _NAMED} more" if len(columns) > _NAMED else ""
            names = ", ".join(columns[:_NAMED]) + more
            many = len(columns) > 1
            sentences.append(
                f"Spikes, bursts and shifts of channel{'s' if many else ''} {names} were not "
                f"judged: {reason}."
            )
        return sentences

    def share_table(self) -> Table:
        """Shares by channel and kind; channels without a finding have one row together."""
        shares = self.shares()
        kinds = list(next(iter(shares.values()), {}))
        lines = [
            (column, format_share(sum(own.values())), *map(format_share, own.values()))
            for column, own in shares.items()
            if sum(own.values())
        ]
        clean = sum(not sum(own.values()) for own in shares.values())
        if clean:
            name = f"{clean} channel{'s' if clean > 1 else ''} without a finding"
            lines.append((name, *("" for _ in ("all", *kinds))))
        return Table(("channel", "flagged", *kinds), tuple(lines))

    def worst_events(self, count: int = _WORST) -> list[QualityEvent]:
        """The events that matter most: broken before unusual, severe and long ones first."""

        def weight(event: QualityEvent) -> tuple[int, float]:
            severity = min(event.severity, _LARGEST_SEVERITY)
            return event.grade, severity * float(np.sqrt(event.rows))

        values = [event for event in self.events if event.channel in self.recording.columns]
        return sorted(values, key=weight, reverse=True)[:count]

    def event_table(self, count: int = _WORST) -> Table:
        """The worst events, one row each."""
        lines = []
        for event in self.worst_events(count):
            severity = f"{event.severity:.1f}" if np.isfinite(event.severity) else "unknown"
            first, last = str(event.first + 1), str(event.last + 1)
            if event.first_time is not None:
                first, last = _short(event.first_time), _short(event.last_time)
            kind = f"{event.kind} ({event.rule})" if event.rule else event.kind
            cells = (event.channel, kind, GRADES[event.grade], first, last)
            lines.append((*cells, f"{event.rows:,}", severity))
        headings = ("channel", "kind", "grade", "first", "last", "rows", "severity")
        return Table(headings, tuple(lines), words=5)

    def summary(self) -> str:
        """What was found as text: sentences, shares by channel, the worst events."""
        blocks = ["\n".join(self.sentences())]
        if self.flags.any():
            blocks.append(self.share_table().plain())
            total = len(self.events)
            shown = min(total, _WORST)
            ending = f", the {shown} worst:" if total > shown else ":"
            title = ("1 event" if total == 1 else f"{total:,} events") + ending
            blocks.append(f"{title}\n{self.event_table().plain()}")
        return "\n\n".join(blocks)

    def __str__(self) -> str:
        return self.summary()

    def to_frame(self) -> pd.DataFrame:
        """One row for each event; with a column `keep` filled in, `keep=` takes it back."""
        import pandas as pd

        names = ["series", "channel", "kind", "grade", "first", "last", "rows"]
        names += ["first_time", "last_time", "severity", "rule"]
        frame = pd.DataFrame(
            [{name: getattr(event, name) for name in names} for event in self.events],
            columns=names,
        )
        frame["grade"] = [GRADES[event.grade] for event in self.events]
        frame["keep"] = ""
        unused = [] if self.recording.times is not None else ["first_time", "last_time"]
        unused += ["series"] if len(set(self.recording.labels)) == 1 else []
        return frame.drop(columns=unused)

    def plot(self) -> Figure:
        """Draw all channels over time, coloured by what was found."""
        from sacm.quality.page import draw_overview

        return draw_overview(self)

    def report(self, path: str | Path) -> None:
        """Write one self-contained HTML page: overview, worst events with their repair, shares.

        Args:
            path: The file to write, such as quality.html.

        Raises:
            SACMError: The file cannot be written.
        """
        from sacm.files import write_atomically
        from sacm.quality.page import quality_page

        if Path(path).is_dir():
            raise ArgumentError(f"{path} is a folder: name a file in it.")
        text = quality_page(self)
        write_atomically(Path(path), lambda file: file.write_text(text, encoding="utf-8"))


def repair_mask(grades: Array, flags: Array, repair: str) -> Array:
    """Which values `[T, C]` are replaced by their repair."""
    if repair == "none":
        return np.zeros(grades.shape, bool)
    return (grades == FAIL) if repair == "fail" else (flags > 0)


def longer_gaps(bad: Array, longest: Sequence[float | None]) -> Array:
    """Bad values `[T, C]` in stretches of more rows than `longest` allows to repair."""
    mask = np.zeros(bad.shape, bool)
    for channel, most in enumerate(longest):
        if most is not None:
            for first, stop in zip(*find_segments(bad[:, channel]), strict=True):
                mask[first:stop, channel] = stop - first > most
    return mask


def time_events(recording: Recording) -> list[QualityEvent]:
    """Missing rows, duplicate rows and jitter of the time axis, as suspect events."""
    step = recording.step
    if recording.times is None or step is None or len(recording.times) < 3:
        return []
    missing_from, jitter_from = 1.5, 0.1  # of a time step
    events = []
    for segment, label in zip(recording.segments, recording.labels, strict=True):
        times = recording.times[segment.start : segment.stop]
        gaps = np.diff(times) / np.timedelta64(1, "s") / step
        regular = np.abs(gaps - np.round(gaps)) <= jitter_from
        calendar = step > 25 * 86400  # months and years differ in length
        kinds = {
            "duplicate rows": gaps == 0,
            "missing rows": gaps > missing_from,
            "jitter": ~regular & (gaps > 0) & (gaps <= missing_from) & (not calendar),
        }
        for kind, mask in kinds.items():
            for first, stop in zip(*find_segments(mask), strict=True):
                ends = first, stop
                rows = [segment.start + int(end) for end in ends]
                amount = float(np.round(gaps[first:stop]).sum() - (stop - first))
                events.append(
                    QualityEvent(
                        "time",
                        kind,
                        SUSPECT,
                        rows[0],
                        rows[1],
                        amount if kind == "missing rows" else float(stop - first),
                        "",
                        label,
                        times[first],
                        times[stop],
                    )
                )
    return events


def _time_sentences(events: Sequence[QualityEvent]) -> list[str]:
    """One sentence for each kind of event of the time axis."""
    sentences = []
    for kind in ("missing rows", "duplicate rows", "jitter"):
        own = [event for event in events if event.kind == kind]
        if own:
            places = f"{len(own):,} place{'s' if len(own) > 1 else ''}"
            first = _short(own[0].first_time)
            count = f"{sum(e.severity for e in own):,.0f} "
            what = {"jitter": "Rows are not evenly spaced"}.get(kind, f"{count}{kind}")
            sentences.append(f"Time axis: {what} at {places}, first after {first}.")
    return sentences


def _equal_stretches(codes: Array) -> list[tuple[int, int]]:
    """First row, and row after the last, of stretches of equal codes that are not 0."""
    edges = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1], [True]]))
    return [(int(a), int(b)) for a, b in pairwise(edges) if codes[a]]


def format_share(share: float) -> str:
    """A share as text, with as many digits as it needs; empty for 0."""
    if share == 0:
        return ""
    if share < 1e-4:
        return "< 0.01 %"
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"


def _short(time: np.datetime64) -> str:
    """A time without the parts that are zero."""
    text = str(time.astype("datetime64[s]")).replace("T", " ")
    return text.removesuffix(" 00:00:00").removesuffix(":00")
