"""How long a run will take: as long as runs like it took, or as its first steps say."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from sacm.errors import SACMError
from sacm.experiments.jobs import load_data
from sacm.tasks import get_task
from sacm.tasks.settings import RunSettings
from sacm.training.files import read_json, write_json
from sacm.training.hardware import Hardware, make_fabric
from sacm.training.run import Run
from sacm.training.trainer import Training

TYPICAL_EPOCHS = 25  # until early stopping, where no run of the backbone has told
_PROBE_BATCH = 4
_SLOW_STEP = 0.5  # seconds; a slower step is not measured at its full batch size
_FILE = "costs.json"

Kind = tuple[str, ...]


@dataclass(frozen=True)
class Estimate:
    """Seconds of one run, and whether a run like it or a few steps say so."""

    seconds: float
    measured: bool


class Costs:
    """Estimates for one folder of runs; measured steps are kept there for the next time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._epoch_seconds: dict[str, float] = {}
        with suppress(SACMError):  # none yet, or damaged: measured again
            self._epoch_seconds = read_json(folder / _FILE)
        self._seconds: dict[Kind, list[float]] = defaultdict(list)
        self._epochs: dict[Kind, list[float]] = defaultdict(list)
        for path in sorted(folder.glob("*/metrics.json")):
            with suppress(SACMError, ValidationError, KeyError):  # what cannot be read says nothing
                self._learn(Run(path.parent))

    def estimate(self, settings: RunSettings) -> Estimate:
        """Seconds that a run with complete settings will take."""
        known = self._seconds.get(_kind(settings))
        if known:
            return Estimate(statistics.median(known), measured=False)
        key = "|".join(_kind(settings))
        if key not in self._epoch_seconds:
            try:
                self._epoch_seconds[key] = measure_epoch(settings)
            except Exception:  # whatever it is, the run itself will say so, and soon
                return Estimate(0.0, measured=True)
            write_json(self.folder / _FILE, self._epoch_seconds)
        similar = self._epochs.get((settings.task, settings.backbone, settings.size))
        typical = statistics.median(similar) if similar else TYPICAL_EPOCHS
        epochs = min(settings.epochs, typical)
        return Estimate(epochs * self._epoch_seconds[key], measured=True)

    def _learn(self, run: Run) -> None:
        settings, metrics = run.settings, run.metrics
        if settings.train_fraction < 1:
            return  # says nothing about a whole one
        spent = metrics["train_seconds"] + metrics["test_seconds"]
        self._seconds[_kind(settings)].append(spent)
        if settings.epochs > settings.patience:  # not cut short on purpose
            about = (settings.task, settings.backbone, settings.size)
            self._epochs[about].append(metrics["epochs"])


def measure_epoch(settings: RunSettings) -> float:
    """Seconds of one training epoch, from a step or two; a slow step is taken with few windows."""
    task, data = get_task(settings.task), load_data(settings.data, settings.task)
    batch_size = settings.batch_size or 1
    few = min(_PROBE_BATCH, batch_size)
    training = _prepare(settings.model_copy(update={"batch_size": few}), task, data)
    seconds = _step_seconds(training) * batch_size / few
    whole = _prepare(settings, task, data)
    if seconds < _SLOW_STEP:
        seconds = _step_seconds(whole)
    return seconds * whole.passes * len(whole.train_batches)


def _prepare(settings: RunSettings, task: Any, data: Any) -> Training:
    run = Run(Path())  # nothing is written before the first epoch ends
    fabric = make_fabric(Hardware(), settings, run)
    raw = settings.model_copy(update={"strategy": "raw"})
    return Training(run, raw, task, data, fabric, show=False)


def _step_seconds(training: Training) -> float:
    batch = next(iter(training.train_batches))
    training.model.train()
    training.step(batch)  # the first step also pays for what is made once
    started = time.perf_counter()
    training.step(batch)
    return time.perf_counter() - started


def _kind(settings: RunSettings) -> Kind:
    """What decides the time of an epoch, to a good part."""
    return (
        settings.task,
        settings.data,
        settings.backbone,
        settings.size,
        f"stride {settings.stride}",
        f"batch {settings.batch_size}",
        f"epochs {settings.epochs}",
    )
