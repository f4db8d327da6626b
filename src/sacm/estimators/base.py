"""What the three estimators share: settings, one training run, the fitted state, save and load."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import sklearn.exceptions
import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from sacm.backbones.base import Backbone
from sacm.data.scaling import ChannelScaler
from sacm.errors import ArgumentError
from sacm.files import read_json, read_weights, write_json, write_weights
from sacm.inference.predictor import Predictor
from sacm.settings import Precision, ResolvedSettings, RunSettings, Selection
from sacm.tasks import make_settings
from sacm.training import Hardware, train
from sacm.types import Size, TaskName

_RECORD, _TENSORS = "estimator.json", "kept.safetensors"


class NotFittedError(ArgumentError, sklearn.exceptions.NotFittedError):
    """Something was asked of an estimator that has not been fitted."""


@dataclass(eq=False, repr=False)
class Estimator(BaseEstimator):
    """Base of the estimators: parameters are the settings of a run, with the same defaults.

    A subclass states its task, builds the task's data container in `fit`, and says what besides
    the network it must keep (`_kept`, `_restore`). The constructor only stores its parameters.

    Args:
        backbone: A network from `sacm.backbones.names(task)`.
        strategy: What is done for robustness: a name from `sacm strategies`.
        size: "paper" or "small".
        seed: Of the weights, the order of the data and the masks.
        batch_size: Windows in a batch. Default: what suits the task.
        epochs: Passes over the training windows, at most.
        patience: Epochs without improvement before training stops.
        time_limit: Seconds after which training stops, or text such as "10m".
        learning_rate: Of Adam.
        weight_decay: Of Adam.
        gradient_clip: Largest norm of the gradients of a step; 0 leaves them as they are.
        stride: Rows between two training windows.
        select: What chooses the epoch. Default: what suits the task.
        precision: "32-true", "bf16-mixed" or "16-mixed".
        compile: Whether the network is compiled.
        overrides: Settings of the backbone, by name.
        accelerator: "auto", "cpu", "gpu" or "mps".
        folder: Keep the training run there; it is not repeated for the same data and settings.
        verbose: Whether progress is shown.

    Attributes after `fit`:
        predictor_: The `sacm.Predictor`.
        model_: The network, in evaluation mode.
        settings_: Everything that decided the result.
        scaler_: Mean and deviation of every channel of the training rows.
        history_: One row an epoch.
        notes_: What was found in the training data.
        n_features_in_: Number of channels.
    """

    _task: ClassVar[TaskName]

    backbone: str | None = None
    _: KW_ONLY
    strategy: str = "raw"
    size: Size = "paper"
    seed: int = 42
    batch_size: int | None = None
    epochs: int = 100
    patience: int = 10
    time_limit: float | str | None = None
    learning_rate: float = 2e-4
    weight_decay: float = 5e-4
    gradient_clip: float = 0.0
    stride: int = 1
    select: Selection | None = None
    precision: Precision = "32-true"
    compile: bool = False
    overrides: dict[str, Any] | None = None
    accelerator: str = "auto"
    folder: str | Path | None = None
    verbose: bool = False

    def _settings(self, name: str, **others: Any) -> RunSettings:
        """The parameters as the settings of a run on the data called `name`."""
        parameters = self.get_params(deep=False)
        values = {
            key: value for key, value in parameters.items() if key in RunSettings.model_fields
        }
        values |= {"task": self._task, "data": name, "overrides": self.overrides or {}, **others}
        return make_settings(**{key: _to_json_value(value) for key, value in values.items()})

    def _train(self, settings: RunSettings, data: Any) -> None:
        """Train on a data container and keep the outcome."""
        hardware = Hardware(accelerator=self.accelerator, show_progress=self.verbose)
        with _own_randomness(), tempfile.TemporaryDirectory(prefix="sacm-") as temporary:
            folder = Path(self.folder or temporary)
            run = train(settings, folder=folder, hardware=hardware, data=data)
            self._adopt(Predictor.load(run))
            self.history_ = [{k: float(v) for k, v in row.items()} for row in run.history]
            self.notes_ = (*data.notes, *run.metrics.get("notes", ()))

    def _adopt(self, predictor: Predictor) -> None:
        """Take over a trained network."""
        self.predictor_: Predictor = predictor
        self.model_: Backbone = predictor.network
        self.settings_: ResolvedSettings = predictor.settings
        self.scaler_: ChannelScaler = predictor.scaler
        self.n_features_in_: int = predictor.shape.channels

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` has been called."""
        return hasattr(self, "model_")

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"this {type(self).__name__} is not fitted: call fit first.")

    def _kept(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """What `load` needs besides the predictor: plain values and tensors."""
        return {}, {}

    def _restore(self, values: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        """Put back what `_kept` gave."""

    def save(self, path: str | Path) -> None:
        """Write a folder of JSON and safetensors, whole or not at all.

        `Predictor.load` takes it too: it has the files of a run, and two more.
        """
        self._check_fitted()
        values, tensors = self._kept()
        parameters = {}
        for name, value in self.get_params(deep=False).items():
            try:
                parameters[name] = _to_json_value(value)
                json.dumps(parameters[name], allow_nan=False)
            except (TypeError, ValueError):
                raise ArgumentError(f"the parameter {name}={value!r} cannot be saved.") from None
        values |= {"history": self.history_, "notes": list(self.notes_)}
        record = {"kind": type(self).__name__, "parameters": parameters, "values": values}
        with _new_folder(Path(path)) as fresh:
            self.predictor_.save(fresh)
            if tensors:
                write_weights(fresh / _TENSORS, tensors)
            write_json(fresh / _RECORD, record)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """What `save` wrote, ready to predict."""
        folder = Path(path)
        if not (folder / _RECORD).is_file():
            raise ArgumentError(f"{path} is not a saved estimator: it holds no {_RECORD}.")
        record = read_json(folder / _RECORD)
        tensors = read_weights(folder / _TENSORS) if (folder / _TENSORS).exists() else {}
        try:
            if record["kind"] != cls.__name__:
                kind = record["kind"]
                raise ArgumentError(f"{path} holds a {kind}: load it with sacm.{kind}.load.")
            estimator = cls(**record["parameters"])
            with _own_randomness():
                estimator._adopt(Predictor.load(folder))
            estimator._restore(record["values"], tensors)
            estimator.history_ = record["values"]["history"]
            estimator.notes_ = tuple(record["values"]["notes"])
        except ArgumentError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ArgumentError(
                f"{path} is damaged or lacks a file: save the estimator again."
            ) from None
        return estimator


@dataclass(eq=False, repr=False)
class TableReading:
    """Parameters of estimators that read tables, by the names of the command line's options.

    Args:
        time: The time column, or several that make the time. Default: found.
        date_order: "day first", "month first" or "year first".
        zone: Time zone of the times, such as "Europe/Berlin".
        columns: The channels. Default: all that are nothing else.
        ignore: Columns to leave out.
        label: A column of labels, which is no channel.
        decimal: The sign before fractions in text.
        category: Columns of words that become inputs of 0 and 1.
        duplicates: "mean" or "first" merges rows of the same time. Default: an error.
        na: Words or numbers that stand for a missing value.
        sheet: The sheet of an Excel file, or the file in a zip archive.
        encoding: Code page of a text file.
    """

    _: KW_ONLY
    time: str | Sequence[str] | None = None
    date_order: str | None = None
    zone: str | None = None
    columns: Sequence[str] | None = None
    ignore: Sequence[str] | None = None
    label: str | None = None
    decimal: Literal[",", "."] | None = None
    category: Sequence[str] | None = None
    duplicates: Literal["mean", "first", "error"] | None = None
    na: Sequence[str] | None = None
    sheet: str | None = None
    encoding: str | None = None


def check_share(name: str, value: Any) -> None:
    """Refuse what is no number between 0 and 1."""
    if not isinstance(value, Real) or not 0 < float(value) < 1:
        raise ArgumentError(f"{name} must be between 0 and 1, got {value!r}.")


def like_rows(values: np.ndarray, data: Any, name: Any) -> Any:
    """Give values for the rows of a frame as a series or frame like it; else as they are.

    Args:
        values: `[T]` become a series, `[T, K]` a frame.
        data: What was asked about.
        name: The name of the series, or those of the K columns.
    """
    kind = type(data).__module__.partition(".")[0]
    if kind not in ("pandas", "polars") or len(data) != len(values):
        return values
    if kind == "polars":
        import polars as pl

        return pl.Series(name, values) if values.ndim == 1 else pl.DataFrame(values, name)
    import pandas as pd

    if values.ndim == 1:
        return pd.Series(values, index=data.index, name=name)
    return pd.DataFrame(values, index=data.index, columns=name)


def _to_json_value(value: Any) -> Any:
    """A parameter as JSON can hold it."""
    if isinstance(value, Mapping):
        return {key: _to_json_value(inner) for key, inner in value.items()}
    if isinstance(value, Path):
        return str(value)
    return value.tolist() if hasattr(value, "tolist") else value  # NumPy, pandas


@contextmanager
def _new_folder(path: Path) -> Iterator[Path]:
    """A folder to fill, which takes the place of `path`, or of an older save there, once filled."""
    if path.exists() and not (path / _RECORD).is_file():
        raise ArgumentError(f"{path} exists and is no saved estimator: choose another place.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp"))
    except OSError as error:
        raise ArgumentError(f"{path} cannot be written ({error.strerror}).") from error
    try:
        yield temporary / "new"
        if path.exists():
            path.rename(temporary / "old")
        (temporary / "new").rename(path)
    finally:
        shutil.rmtree(temporary)


@contextmanager
def _own_randomness() -> Iterator[None]:
    """Training seeds everything; the caller's random numbers go on as if it had not."""
    python, numpy = random.getstate(), np.random.get_state()
    try:
        devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
        with torch.random.fork_rng(devices):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
