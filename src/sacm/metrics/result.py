"""The shape of every result: frozen, and a dictionary away from JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Record:
    """Base of all reports; holds plain Python values only."""

    def to_dict(self) -> dict[str, Any]:
        """The report as nested dictionaries, lists and numbers that `json.dumps` accepts."""
        return asdict(self)


@dataclass(frozen=True)
class Measure(Record):
    """One number, or None and the reason why there is none."""

    value: float | None
    reason: str | None = None


@dataclass(frozen=True)
class PrecisionRecall(Record):
    """Precision, recall and F1 of one definition; a None among them is explained by `reason`."""

    precision: float | None
    recall: float | None
    f1: float | None
    reason: str | None = None

    @classmethod
    def undefined(cls, reason: str) -> PrecisionRecall:
        """Nothing can be said about these labels."""
        return cls(None, None, None, reason)

    @classmethod
    def silent(cls, reason: str = "no point is predicted anomalous") -> PrecisionRecall:
        """Nothing was found, and there is no alarm whose precision could be asked for."""
        return cls(None, 0.0, 0.0, f"{reason}, so precision is undefined")

    @classmethod
    def of(cls, precision: float, recall: float) -> PrecisionRecall:
        """F1 is the harmonic mean, 0 when both are 0."""
        total = precision + recall
        f1 = 2 * precision * recall / total if total > 0 else 0.0
        return cls(float(precision), float(recall), float(f1))
