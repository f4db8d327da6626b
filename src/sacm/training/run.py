"""A run on disk: a folder with everything needed to know it, repeat it and use its model.

docs/architecture.md lists the files. A run is finished when `metrics.json` and its weights are
there; until then `last.pt` says where to resume.
"""

from __future__ import annotations

import csv
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout

from sacm.backbones.base import Backbone
from sacm.data.datasets import AnyData
from sacm.data.load import resolve
from sacm.data.scaling import ChannelScaler
from sacm.errors import DataError, SACMError, SACMWarning
from sacm.files import read_json, read_metadata, read_weights, write_json
from sacm.inject.attach import strip_state_dict
from sacm.settings import ResolvedSettings
from sacm.strategies.base import Strategy
from sacm.strategies.registry import parse
from sacm.tasks import get_task
from sacm.tasks.base import Calibration, NetworkShape, Task

DEFAULT_FOLDER = Path("runs")
BEST_FILE, CALIBRATION_FILE = "best.safetensors", "calibration.safetensors"
LOCK = ".lock"
_FINGERPRINT = "fingerprint.json"
# What answers depend on; settings may be edited, for data move.
_DECISIVE = ("model.json", "scaler.json", "*guard.safetensors", CALIBRATION_FILE, BEST_FILE)
Made = TypeVar("Made")


@dataclass(frozen=True)
class Run:
    """A run folder, finished or not."""

    folder: Path

    @classmethod
    def load(cls, folder: str | Path) -> Run:
        """An existing run; an `SACMError` if the folder is not that of one."""
        if not (Path(folder) / "config.json").exists():
            raise SACMError(f"{folder} is not a run folder: it holds no config.json.")
        return cls(Path(folder))

    @property
    def tested(self) -> bool:
        """Whether its test results are there."""
        return (self.folder / "metrics.json").exists()

    @property
    def finished(self) -> bool:
        """Whether its test results and its weights are there."""
        return self.tested and (self.folder / BEST_FILE).exists()

    @cached_property
    def settings(self) -> ResolvedSettings:
        """What was asked; null in the file is what nobody asked for."""
        return self._read(
            "config.json",
            lambda record: ResolvedSettings(**{k: v for k, v in record.items() if v is not None}),
        )

    @cached_property
    def shape(self) -> NetworkShape:
        """What its network takes and gives."""
        return self._read("model.json", lambda record: NetworkShape(**record))

    @cached_property
    def scaler(self) -> ChannelScaler:
        """What the training windows were scaled by."""
        return self._read("scaler.json", ChannelScaler.from_dict)

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """Test results, timings, epochs."""
        if not self.tested:
            raise SACMError(f"{self.folder} is not finished: run the same training again.")
        return self._read("metrics.json", dict)

    @property
    def row(self) -> dict[str, float | None]:
        """The flat test results."""
        row: dict[str, float | None] = self.metrics["test"]
        return row

    @cached_property
    def calibration(self) -> Calibration | None:
        """What intervals and thresholds are made from; None for classification."""
        path = self.folder / CALIBRATION_FILE
        return Calibration(read_weights(path), read_metadata(path)) if path.exists() else None

    @cached_property
    def history(self) -> list[dict[str, str]]:
        """The rows of history.csv."""
        with (self.folder / "history.csv").open(encoding="utf-8") as file:
            return list(csv.DictReader(file))

    @property
    def task(self) -> Task[Any]:
        """The task of its settings."""
        return get_task(self.settings.task)

    @cached_property
    def strategy(self) -> Strategy:
        """The strategy with what it learnt; of a race, the winner."""
        return parse(self.settings.strategy).load(self.folder)

    def read_as(self, reading: Mapping[str, Any]) -> Run:
        """The same run, for data that are read with other options, by name."""
        other = Run(self.folder)
        # What a cached property would hold; the file of settings stays as it is.
        vars(other)["settings"] = self.settings.model_copy(update=dict(reading))
        return other

    def load_data(self) -> AnyData:
        """The data it was trained on."""
        settings = self.settings
        data = resolve(settings.data, task=settings.task, reading=settings.reading())
        return self.task.divide(settings, data)

    def load_model(self) -> Backbone:
        """The network with the weights of the chosen epoch, in evaluation mode."""
        weights = strip_state_dict(read_weights(self.folder / BEST_FILE))
        try:
            model = self.strategy.build(partial(self.task.build, self.settings, self.shape))
            model.load_state_dict(weights)
        except (KeyError, TypeError) as error:
            why = "another version of sacm trained this run: remove it and train it again"
            raise SACMError(f"{self.folder} cannot be read: {why}.") from error
        except RuntimeError as error:
            last = str(error).splitlines()[-1].strip()
            file = self.folder / BEST_FILE
            raise SACMError(f"{file} does not fit the backbone: {last}") from None
        return model.eval()

    def check_unchanged(self) -> None:
        """Refuse a run whose files are not those that its training wrote."""
        path, now = self.folder / _FINGERPRINT, _digests(self.folder)
        for name, digest in read_json(path).items() if path.exists() else ():
            if now.get(name) != digest:
                state = "was changed since" if name in now else "is gone that was written by"
                raise SACMError(
                    f"{self.folder / name} {state} the training, so answers would be wrong: "
                    "restore it, or train again."
                )

    def _read(self, name: str, make: Callable[[Any], Made]) -> Made:
        """What `make` makes of a JSON file."""
        record = read_json(self.folder / name)
        try:
            return make(record)
        except (TypeError, ValueError, KeyError, AttributeError):
            why = "is damaged or was written by another version: train it again"
            raise SACMError(f"{self.folder / name} {why}.") from None


def write_fingerprint(folder: Path) -> None:
    """Keep digests of the files that predictions are made from, for `Run.check_unchanged`."""
    write_json(folder / _FINGERPRINT, _digests(folder))


def _digests(folder: Path) -> dict[str, str]:
    files = sorted({path for pattern in _DECISIVE for path in folder.glob(pattern)})
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in files if path.is_file()}


def record_failure(run: Run, error: Exception) -> None:
    """Keep the reason why a run stopped; of one whose data allow no training, nothing is kept."""
    if isinstance(error, DataError) and not (run.folder / "model.json").exists():
        shutil.rmtree(run.folder, ignore_errors=True)
        return
    with suppress(SACMError):  # a full disk was the reason itself
        write_json(run.folder / "failure.json", {"reason": str(error)})


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Hold a run folder: one process trains a run, another that is asked for it waits.

    The lock ends with its process, killed or not. A file system without locks has no waiting.
    """
    lock = FileLock(folder / LOCK)
    with suppress(OSError, NotImplementedError):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            warnings.warn(
                f"another process is training {folder}: this one waits for it and uses what it has "
                "done; Ctrl-C stops the waiting only.",
                SACMWarning,
                stacklevel=3,
            )
            lock.acquire(poll_interval=0.5)
    try:
        yield
    finally:
        if lock.is_locked:
            with suppress(OSError):  # some systems keep a file that is open
                (folder / LOCK).unlink(missing_ok=True)
            lock.release()
        with suppress(OSError):  # only if nothing was written
            folder.rmdir()
