"""Data sets repaired for training: nothing of a later split is looked at, test targets stay."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, NamedTuple, TypeVar

import numpy as np

from sacm.data.datasets import AnomalyData, AnyData, ClassificationData, ForecastingData
from sacm.quality.guard import Guard, GuardFindings
from sacm.quality.reading import read_subject
from sacm.quality.record import QualityRecord
from sacm.quality.subject import Subject

Targets = Literal["weigh", "drop", "keep"]
Data = TypeVar("Data", bound=AnyData)


class Repaired(NamedTuple):
    """A data set with repaired training rows, and the share of them that was repaired."""

    data: AnyData
    share: float


def repair_for_training(
    data: AnyData,
    guard: Guard,
    *,
    inputs: bool = True,
    targets: Targets = "weigh",
    flags: np.ndarray | None = None,
) -> Repaired:
    """Repair the rows that a network learns from.

    Forecasting: training rows by training rows alone, validation rows with what came before them;
    test rows stay as they are. Classification: every case by itself. Anomaly detection: training
    rows; test rows are never touched.

    Args:
        data: The data set.
        guard: Fitted on its training part.
        inputs: Whether values are replaced by their repair; False only changes weights.
        targets: What a repaired target counts in a forecasting loss: its reliability ("weigh"),
            nothing ("drop"), or as much as any other ("keep").
        flags: Flags `[T, C]` of a forecasting data set, if it is known what is broken.

    Returns:
        The data set with repaired rows, and the share of training values that was repaired.
    """
    if isinstance(data, ForecastingData):
        return _forecasting(data, guard, inputs=inputs, targets=targets, flags=flags)
    if isinstance(data, ClassificationData):
        return _whole(data, guard, read_subject(data), inputs)
    return _anomaly(data, guard, inputs)


def _forecasting(
    data: ForecastingData,
    guard: Guard,
    *,
    inputs: bool,
    targets: Targets,
    flags: np.ndarray | None,
) -> Repaired:
    subject = read_subject(data)
    values, weights = data.values.copy(), np.ones(data.values.shape, np.float32)
    counts = [0, 0]
    borders = (("train", data.splits.train.stop), ("val", data.splits.val.stop))
    for split, stop in borders:
        known = _until(subject, stop)
        if known is None:
            continue
        given = None if flags is None else flags[:stop]
        found = guard.find(known, causal=False, flags=given)
        record = QualityRecord.of(known, guard, found)
        rows = data.splits[split]
        own = slice(rows.start, rows.stop)
        flagged = found.flags[own] > 0
        counts[0] += int(flagged.sum())
        counts[1] += flagged.size
        if inputs:
            values[own] = np.where(flagged, found.values[own], values[own])
        if targets != "keep":
            worth = record.reliability[own] if targets == "weigh" and inputs else 0.0
            weights[own] = np.where(flagged, worth, 1.0)
    if data.observed is not None:
        weights *= data.observed
    observed = weights if (weights < 1).any() else data.observed
    return Repaired(replace(data, values=values, observed=observed), counts[0] / max(1, counts[1]))


def _until(subject: Subject, stop: int) -> Subject | None:
    """The rows before `stop`, as pieces; None if there are none."""
    kept = [
        (range(rows.start, min(rows.stop, stop)), label, start)
        for rows, label, start in zip(subject.pieces, subject.labels, subject.starts, strict=True)
        if rows.start < stop
    ]
    if not kept:
        return None
    pieces, labels, starts = (tuple(part) for part in zip(*kept, strict=True))
    return replace(
        subject,
        values=subject.values[:stop],
        times=None if subject.times is None else subject.times[:stop],
        pieces=pieces,
        labels=labels,
        starts=starts,
        train=pieces,
    )


def _whole(data: Data, guard: Guard, subject: Subject, inputs: bool) -> Repaired:
    found = guard.find(subject, causal=False)
    share = float((found.flags > 0).mean())
    return Repaired(subject.restore(found.values, found.flags > 0) if inputs else data, share)


def _apply(found: GuardFindings, subject: Subject) -> np.ndarray:
    """Repaired values where something was flagged; everything else bit by bit as it was."""
    return np.where(found.flags > 0, found.values, subject.values).astype(np.float32)


def _anomaly(data: AnomalyData, guard: Guard, inputs: bool) -> Repaired:
    subject = read_subject(data)
    training = _until(subject, len(data.train))
    assert training is not None
    found = guard.find(training, causal=False)
    share = float((found.flags > 0).mean())
    return Repaired(replace(data, train=_apply(found, training)) if inputs else data, share)
