"""How long a run will take: as runs like it took, as its first steps say, or by a guess."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from sacm.data.batches import Windows
from sacm.data.datasets import AnyData
from sacm.errors import SACMError
from sacm.experiments.guess_cost import guess_epoch
from sacm.experiments.jobs import load_data, load_extent
from sacm.experiments.run_files import read_record_with
from sacm.files import write_json
from sacm.settings import ResolvedSettings
from sacm.tasks import get_task
from sacm.tasks.base import EVALUATION_BATCH
from sacm.training.run import Run

if TYPE_CHECKING:
    from sacm.training.trainer import Training

TYPICAL_EPOCHS = 25  # until early stopping, where no run of the backbone has told
_PROBE_BATCH = 4
_SLOW = 0.5  # seconds; where a few windows take longer, a full batch is not measured
_REPEATS, _LEAST = 3, 0.1  # a measurement is repeated so often, and for so many seconds
_FILE = "costs.json"

Kind = tuple[str, ...]
Basis = Literal["runs", "measured", "guess", "unknown"]


class Estimate(NamedTuple):
    """Seconds of a run, and what they rest on."""

    seconds: float
    basis: Basis


class Costs:
    """Estimates for one folder of runs by workers with so many threads.

    What finished runs took goes before what was measured; that is kept there for the next time.
    measure: whether a few batches of a run may be measured where neither is known; if not, its
    time is guessed.
    """

    def __init__(self, folder: Path, *, threads: int, measure: bool = True) -> None:
        self.folder, self.threads, self.measure = folder, threads, measure
        self._epoch_seconds: dict[str, float] = {}
        with suppress(SACMError):  # none yet, or damaged: measured again
            self._epoch_seconds = read_record_with(folder / _FILE)
        self._seconds: dict[Kind, list[float]] = defaultdict(list)
        self._epochs: dict[Kind, list[float]] = defaultdict(list)
        for path in sorted(folder.glob("*/metrics.json")):
            # What cannot be read says nothing, whatever is wrong with it.
            with suppress(SACMError, OSError, ValueError, TypeError, KeyError):
                self._learn(Run(path.parent))

    def estimate(self, settings: ResolvedSettings) -> Estimate:
        """How long a run with complete settings will take."""
        known = self._seconds.get(_kind(settings))
        if known:
            return Estimate(statistics.median(known), "runs")
        try:
            an_epoch, basis = self._an_epoch(settings)
        except Exception:  # whatever it is, the run itself will say so, and soon
            return Estimate(0.0, "unknown")
        similar = self._epochs.get((settings.task, settings.backbone, settings.size))
        typical = statistics.median(similar) if similar else TYPICAL_EPOCHS
        return Estimate(min(settings.epochs, typical) * an_epoch, basis)

    def _an_epoch(self, settings: ResolvedSettings) -> Estimate:
        """How long one epoch will take."""
        key = "|".join((*_kind(settings), f"threads {self.threads}"))
        if key not in self._epoch_seconds:
            if not self.measure:
                extent = load_extent(settings.data, settings.task, settings.split)
                return Estimate(guess_epoch(settings, extent), "guess")
            self._epoch_seconds[key] = measure_epoch(settings, self.threads)
            write_json(self.folder / _FILE, self._epoch_seconds)
        return Estimate(self._epoch_seconds[key], "measured")

    def _learn(self, run: Run) -> None:
        settings, metrics = run.settings, run.metrics
        if settings.train_fraction < 1:
            return  # says nothing about a whole one
        checking = sum(float(row["validation_seconds"]) for row in run.history)
        spent = metrics["train_seconds"] + checking + metrics["test_seconds"]
        self._seconds[_kind(settings)].append(spent)
        if settings.epochs > settings.patience:  # not cut short on purpose
            about = (settings.task, settings.backbone, settings.size)
            self._epochs[about].append(metrics["epochs"])


def measure_epoch(settings: ResolvedSettings, threads: int, data: AnyData | None = None) -> float:
    """Seconds of one epoch and its validation with so many threads, from a few batches.

    `data` replaces what the settings name.
    """
    from sacm.training.hardware import thread_count

    task = get_task(settings.task)
    if data is None:
        data = load_data(settings.data, settings.task, settings.split)
    with thread_count(threads):
        training = _prepare(settings, task, data)
        batches, val = training.train_batches, training.windows.val
        checked = min(EVALUATION_BATCH, len(val))
        training.model.train()
        step = _batch_seconds(
            batches.windows, batches.batch_size, lambda batch: float(training.step(batch))
        )
        check = _batch_seconds(val, checked, partial(_validate, training))
    return step * training.passes * len(batches) + check * len(val) / checked


def _prepare(settings: ResolvedSettings, task: Any, data: Any) -> Training:
    from sacm.training.hardware import Hardware, make_fabric
    from sacm.training.trainer import Training

    run = Run(Path())  # nothing is written before the first epoch ends
    fabric = make_fabric(Hardware(), settings, run)
    raw = settings.model_copy(update={"strategy": "raw"})
    return Training(run, raw, task, data, fabric, show=False)


def _validate(training: Training, batch: Any) -> None:
    alone: Any = [batch]
    select = training.settings.select
    training.task.validate(training.model, alone, training.strategy, select)


def _batch_seconds(windows: Windows[Any], size: int, act: Callable[[Any], object]) -> float:
    """Seconds of `act` on a batch of `size` windows; where a few are slow they speak for all."""
    few = min(_PROBE_BATCH, size)
    seconds = _shortest(windows, few, act)
    return seconds * size / few if seconds > _SLOW else _shortest(windows, size, act)


def _shortest(windows: Windows[Any], size: int, act: Callable[[Any], object]) -> float:
    """The least of a few times: others include what is made once, or what else the machine does."""
    batch = windows.batch(np.arange(size))
    times: list[float] = []
    while len(times) < _REPEATS or sum(times) < _LEAST:
        started = time.perf_counter()
        act(batch)
        times.append(time.perf_counter() - started)
    return min(times)


def _kind(settings: ResolvedSettings) -> Kind:
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
