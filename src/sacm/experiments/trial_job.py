"""One trial of a search for settings, as a job for a process or a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sacm.data.datasets import AnomalyData, AnyData, ClassificationData, Segment, TelemetrySegment
from sacm.data.load import resolve
from sacm.data.splits import Splits
from sacm.experiments.jobs import Job
from sacm.experiments.study import Search, import_optuna, open_study
from sacm.settings import ResolvedSettings

PRUNED = "TrialPruned"  # the beginning of what a worker says of a trial that was stopped early


@dataclass(frozen=True, kw_only=True)
class TrialJob(Job):
    """A trial by its settings.

    Attributes:
        base: What all trials share.
        search: What is searched, and how.
        record: The file of the study. A worker on another machine does not see it: its trials are
            not stopped early.
        trial: The trial's id in the study.
        number: Its number, which the driver knows it by.
    """

    base: ResolvedSettings
    search: Search
    record: Path
    trial: int
    number: int

    def load(self) -> Any:
        """The data without their test part."""
        settings = self.settings
        return without_test(resolve(settings.data, task=settings.task, reading=settings.reading()))

    def watch(self) -> Callable[[int, float], None] | None:
        """Report to the study, which may stop the trial."""
        if not self.record.exists():
            return None
        optuna = import_optuna()
        study = open_study(self.base, self.search, self.record)
        return report_to(optuna.trial.Trial(study, self.trial))


def report_to(trial: Any) -> Callable[[int, float], None]:
    """What tells a trial of every epoch, and ends a training that the study gives up."""
    optuna = import_optuna()

    def judge(epoch: int, value: float) -> None:
        trial.report(value, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned

    return judge


def without_test(data: AnyData) -> AnyData:
    """The same data as if their test part did not exist."""
    if isinstance(data, ClassificationData):
        subjects = None if data.subjects_test is None else data.subjects_test[:0]
        return replace(
            data,
            X_test=data.X_test[:0],
            y_test=data.y_test[:0],
            lengths_test=data.lengths_test[:0],
            subjects_test=subjects,
        )
    if isinstance(data, AnomalyData):
        segments = tuple(TelemetrySegment(s.name, s.train, range(0)) for s in data.segments)
        return replace(data, test=data.test[:0], labels=data.labels[:0], segments=segments)
    if not len(data.splits.test):
        return data
    stop = data.splits.test.start
    pieces = [Segment(s.name, s.start, min(s.stop, stop)) for s in data.segments if s.start < stop]
    arrays: dict[str, Any] = {
        name: None if getattr(data, name) is None else getattr(data, name)[:stop]
        for name in ("values", "timestamps", "targets", "observed")
    }
    splits = Splits(data.splits.train, data.splits.val, range(stop, stop))
    return replace(data, splits=splits, segments=tuple(pieces), **arrays)
