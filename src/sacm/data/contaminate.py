"""Data sets with broken training and validation parts; test parts stay clean."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from sacm.data.datasets import AnomalyData, AnyData, ClassificationData, ForecastingData
from sacm.data.synthetic.corruptions import worse_fields
from sacm.errors import ArgumentError
from sacm.faults.catalogue import FAULTS
from sacm.faults.series import break_series
from sacm.faults.telemetry import KIND as ANOMALIES
from sacm.faults.telemetry import break_rows

Data = TypeVar("Data", ForecastingData, ClassificationData, AnomalyData)
_RATIO = 0.3


@dataclass(frozen=True)
class Contamination:
    """Which fault breaks which share of the training and validation data, written `mix(0.3)`."""

    kind: str
    ratio: float = _RATIO

    def __str__(self) -> str:
        return f"{self.kind}({self.ratio:g})"

    @classmethod
    def parse(cls, text: str) -> Contamination:
        """Read `kind(ratio)`; without a ratio it is 0.3.

        Raises:
            ArgumentError: There is no such fault, or the ratio is no share.

        Example:
            >>> str(Contamination.parse("MIX(.1)"))
            'mix(0.1)'
        """
        name, bracket, rest = text.strip().partition("(")
        kind = FAULTS.spelling(name.strip())
        inside = rest.strip().removesuffix(")").rpartition("=")[2] if bracket else str(_RATIO)
        try:
            ratio = float(inside)
        except ValueError:
            ratio = -1.0
        if not 0 < ratio <= 1 or (bracket and not rest.strip().endswith(")")):
            raise ArgumentError(
                f"contamination {text!r}: write a fault and a share in (0, 1], such as mix(0.3)."
            )
        return cls(kind, ratio)


def contaminate(data: Data, kind: str, ratio: float = _RATIO, *, seed: int = 0) -> Data:
    """Break the training and validation part of a data set; the test part stays as it is.

    Forecasting: rows, so inputs and targets; `broken` says which values. Classification: labels.
    Anomaly detection: training rows.

    Args:
        data: One of the three data sets.
        kind: A fault: of series, such as mix, for forecasting; symmetric or asymmetric for
            classification; anomalies or a fault of series for anomaly detection.
        ratio: Share of the values, labels or rows to break.
        seed: Of places and sizes.

    Raises:
        ArgumentError: The fault does not fit the task.

    Example:
        >>> import sacm
        >>> broken = contaminate(sacm.data.load("Synth-12"), "stuck", 0.2, seed=1)
        >>> bool(broken.broken[broken.splits.train.start : broken.splits.train.stop].any())
        True
    """
    return replace(data, **_changes(data, kind, ratio, seed))


def _changes(data: AnyData, kind: str, ratio: float, seed: int) -> dict[str, Any]:
    """The fields that contamination changes."""
    if isinstance(data, ClassificationData):
        return {"y_train": _flip_labels(data, kind, ratio, seed)}
    if isinstance(data, AnomalyData):
        return {"train": _break_training_rows(data, kind, ratio, seed)}
    values, broken = data.values.copy(), np.zeros(data.values.shape, dtype=bool)
    ranges = [rows for split in ("train", "val") for rows in data.ranges(split)]
    for number, rows in enumerate(ranges):
        own = slice(rows.start, rows.stop)
        found = break_series(data.values[own], kind, ratio, seed=seed + number)
        values[own], broken[own] = found.values, found.broken
    fields = worse_fields(data, values, "same")
    if data.targets is not None:  # test targets stay as they are
        kept = slice(data.splits.test.start, data.splits.test.stop)
        fields["targets"] = fields["values"].copy()
        fields["targets"][kept] = data.targets[kept]
    return {**fields, "broken": broken}


def contaminate_by_text(data: AnyData, text: str, *, seed: int) -> AnyData:
    """Break a data set as a run's settings say; an empty text leaves it as it is."""
    if not text:
        return data
    asked = Contamination.parse(text)
    return replace(data, **_changes(data, asked.kind, asked.ratio, seed))


def _flip_labels(data: ClassificationData, kind: str, ratio: float, seed: int) -> np.ndarray:
    """Training labels `[N]`, some of them wrong."""
    flip = FAULTS.get(kind).labels
    if flip is None:
        known = ", ".join(name for name, fault in FAULTS.items() if fault.labels is not None)
        raise ArgumentError(f"{kind} does not break labels of {data.name}: use {known}.")
    codes = data.encode(data.y_train)
    wrong = flip(codes, len(data.classes), ratio, np.random.default_rng(seed))
    return np.asarray(data.classes)[wrong].astype(data.y_train.dtype)


def _break_training_rows(data: AnomalyData, kind: str, ratio: float, seed: int) -> np.ndarray:
    """Training rows `[T, C]`, each segment broken by itself."""
    train = data.train.copy()
    for number, segment in enumerate(data.segments):
        own = slice(segment.train.start, segment.train.stop)
        if len(segment.train) < 2:
            continue
        if kind == ANOMALIES:
            train[own] = break_rows(train[own], ratio, seed=seed + number).values
        else:
            train[own] = break_series(train[own], kind, ratio, seed=seed + number).values
    # Detectors read numbers only: a value that is gone keeps what it was.
    return np.where(np.isnan(train), data.train, train)
