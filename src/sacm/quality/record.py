"""What an inspection found: flags, repairs, events and shares."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from sacm.quality.guard import Guard, GuardFindings
from sacm.quality.kinds import GOOD, KINDS
from sacm.quality.series.events import events as list_events
from sacm.quality.series.limits import robust_scale
from sacm.quality.series.reliability import reliability
from sacm.quality.subject import Subject


@dataclass(frozen=True)
class QualityEvent:
    """One stretch of one kind in one channel.

    Attributes:
        channel: Name of the channel.
        kind: What is wrong: one of `KINDS`.
        first: First row, counted from 0 in order of time.
        last: Last row.
        severity: Largest distance from what the values probably were, in the channel's deviations.
        series: Name of the series, where there are several.
        first_time: Time of the first row, where times are known.
        last_time: Time of the last row.
    """

    channel: str
    kind: str
    first: int
    last: int
    severity: float
    series: str
    first_time: Any = None
    last_time: Any = None

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.last - self.first + 1


@dataclass(frozen=True, eq=False)
class QualityRecord:
    """What is broken in a table, where, and what it probably was; rows are in order of time.

    Attributes:
        subject: The rows as they were read.
        guard: What was learnt from the training rows.
        flags: `[T, C]` uint8, positions in `kinds`; 0 is a healthy value.
        values: Repaired values `[T, C]`; healthy ones as they were.
        uncertainty: `[T, C]` deviation to expect of repaired values, in the data's units; else 0.
        kinds: Names of the flags.
    """

    subject: Subject
    guard: Guard
    flags: np.ndarray
    values: np.ndarray
    uncertainty: np.ndarray
    kinds: tuple[str, ...] = KINDS

    @classmethod
    def of(cls, subject: Subject, guard: Guard, found: GuardFindings) -> Self:
        """The result of an inspection."""
        return cls(subject, guard, found.flags, found.values, found.uncertainty)

    @property
    def repaired(self) -> Any:
        """The data with broken values repaired, in the form in which they came."""
        return self.subject.restore(self.values, self.flags != GOOD)

    @cached_property
    def reliability(self) -> np.ndarray:
        """How far to trust each value after repair, `[T, C]` in [0, 1]; 1 for healthy values."""
        good = self.flags == GOOD
        columns = range(self.flags.shape[1])
        known = [self.subject.values[good[:, c], c].astype(np.float64) for c in columns]
        scales = [robust_scale(column) if len(column) else 0.0 for column in known]
        return reliability(self.flags, self.uncertainty, scales)

    @property
    def weights(self) -> np.ndarray:
        """Weights for a training loss, `[T, C]` in [0, 1]: the reliability."""
        return self.reliability

    @cached_property
    def events(self) -> list[QualityEvent]:
        """Everything that was found, by first row."""
        subject, times = self.subject, self.subject.times
        pieces, _ = subject.parts()
        found = list_events(
            self.flags, subject.values, self.values, self.uncertainty, pieces=pieces
        )
        firsts = np.array([piece.start for piece in subject.pieces])
        places = np.searchsorted(firsts, [event.first for event in found], side="right") - 1
        result = []
        for event, place in zip(found, places.tolist(), strict=True):
            ends = (event.first, event.last)
            stamps = (None, None) if times is None else tuple(times[row] for row in ends)
            result.append(
                QualityEvent(
                    subject.columns[event.channel],
                    event.kind,
                    *ends,
                    event.severity,
                    subject.labels[place],
                    *stamps,
                )
            )
        return result

    @property
    def share(self) -> float:
        """Share of all values that are flagged."""
        return float((self.flags != GOOD).mean())

    def shares(self) -> dict[str, dict[str, float]]:
        """Share of each channel's values by kind, for the kinds that occur."""
        occurring = [code for code in range(1, len(KINDS)) if (self.flags == code).any()]
        return {
            column: {
                KINDS[code]: float((self.flags[:, place] == code).mean()) for code in occurring
            }
            for place, column in enumerate(self.subject.columns)
        }

    def overview(self) -> dict[str, Any]:
        """What was found in a few plain numbers, as a run keeps it."""
        return {
            "name": self.subject.name,
            "rows": len(self.flags),
            "share": self.share,
            "shares": self.shares(),
            "unjudged": dict(self.guard.unjudged_),
        }
