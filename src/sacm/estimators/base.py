"""What the three estimators share: parameters, one training run, fitted state, save and load."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from inspect import Parameter, Signature, getdoc
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import sklearn.exceptions
import torch
from sklearn.base import BaseEstimator

from sacm.errors import ArgumentError
from sacm.files import read_json, write_json
from sacm.inference.predictor import Predictor
from sacm.settings import READING, RunSettings
from sacm.tasks import get_task, make_settings
from sacm.training import Hardware, train
from sacm.types import TaskName

_RECORD = "estimator.json"
_NO_PARAMETERS = ("task", "data", "contamination", "watch")  # settings for experiments
# Parameters of all estimators that are no settings of a run: default and help.
_BESIDE_SETTINGS: dict[str, tuple[Any, str]] = {
    "overrides": (None, "Settings of the backbone by name, a dict."),
    "accelerator": ("auto", "auto, cpu, gpu or mps."),
    "folder": (None, "Keep the training run there; it is not repeated for the same data."),
    "verbose": (False, "Whether progress is shown."),
}


# How data are read comes last.
_ORDER = [name for name in RunSettings.model_fields if name not in READING] + list(READING)


class NotFittedError(ArgumentError, sklearn.exceptions.NotFittedError):
    """Something was asked of an estimator that has not been fitted."""


class Estimator(BaseEstimator):
    """Base of the estimators: parameters are the settings of a run, with the same defaults.

    Signature and help of a subclass are made from `sacm.settings.RunSettings`, so that Python and
    the command line have the same names. A subclass states its task and builds the task's data in
    `fit`. The constructor only stores its parameters; `backbone` may be given without its name.

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
    _without: ClassVar[tuple[str, ...]] = ()  # settings that are no parameters
    _added: ClassVar[Mapping[str, tuple[Any, str]]] = {}  # further parameters: default and help

    folder: str | Path | None
    overrides: dict[str, Any] | None
    strategy: str

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        task = get_task(cls._task)
        skipped = {*_NO_PARAMETERS, *task.unused, *cls._without}
        names = sorted(RunSettings.model_fields.keys() - skipped, key=_ORDER.index)
        fields = [RunSettings.model_fields[name] for name in names]
        helps = {n: (f.default, f.description) for n, f in zip(names, fields, strict=True)}
        helps |= {**cls._added, **_BESIDE_SETTINGS}
        defaults = {name: default for name, (default, _) in helps.items()}
        defaults["strategy"] = task.default_strategy
        if cls._task != "forecasting":  # where candidates compete
            defaults["backbone"] = task.default_backbone
        first, rest = Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY
        signature = Signature(
            [
                Parameter("self", first),
                Parameter("backbone", first, default=defaults.pop("backbone")),
                *(Parameter(name, rest, default=value) for name, value in defaults.items()),
            ]
        )

        def store(self: Estimator, *arguments: Any, **named: Any) -> None:
            bound = signature.bind(self, *arguments, **named)
            bound.apply_defaults()
            for name, value in list(bound.arguments.items())[1:]:
                setattr(self, name, value)

        store.__signature__ = signature  # type: ignore[attr-defined]
        cls.__init__ = store  # type: ignore[method-assign]
        lines = "\n".join(f"    {name}: {text}" for name, (_, text) in helps.items())
        text, example, code = (getdoc(cls) or "").partition("Example:")
        cls.__doc__ = f"{text}Args:\n{lines}\n\n{example}{code}"

    def __init__(self, backbone: str | None = None, **parameters: Any) -> None:
        """Store the parameters; every subclass has its own version, made by the class itself."""

    def _settings(self, name: str, **others: Any) -> RunSettings:
        """The parameters as the settings of a run on the data called `name`."""
        given = self.get_params(deep=False).items()
        values = {key: value for key, value in given if key in RunSettings.model_fields}
        values |= {"task": self._task, "data": name, "overrides": self.overrides or {}, **others}
        return make_settings(**{key: _to_json_value(value) for key, value in values.items()})

    def _train(self, settings: RunSettings, data: Any) -> None:
        """Train on a data container and keep the outcome."""
        parameters = self.get_params(deep=False)
        hardware = Hardware(
            accelerator=parameters["accelerator"], show_progress=parameters["verbose"]
        )
        with _own_randomness(), tempfile.TemporaryDirectory(prefix="sacm-") as temporary:
            folder = Path(self.folder or temporary)
            run = train(settings, folder=folder, hardware=hardware, data=data)
            self._adopt(Predictor.load(run))
            self.history_ = [{k: float(v) for k, v in row.items()} for row in run.history]
            self.notes_ = (*data.notes, *run.metrics.get("notes", ()))

    def _adopt(self, predictor: Predictor) -> None:
        """Take over a trained network."""
        self.predictor_ = predictor
        self.model_, self.settings_ = predictor.network, predictor.settings
        self.scaler_, self.n_features_in_ = predictor.scaler, predictor.shape.channels

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` has been called."""
        return hasattr(self, "model_")

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"this {type(self).__name__} is not fitted: call fit first.")

    def save(self, path: str | Path) -> None:
        """Write a folder of JSON and safetensors, whole or not at all.

        `Predictor.load` takes it too: it has the files of a run, and one more. The training data
        are not in it.
        """
        self._check_fitted()
        parameters = {}
        for name, value in self.get_params(deep=False).items():
            try:
                parameters[name] = _to_json_value(value)
                json.dumps(parameters[name], allow_nan=False)
            except (TypeError, ValueError):
                raise ArgumentError(f"the parameter {name}={value!r} cannot be saved.") from None
        record = {"kind": type(self).__name__, "parameters": parameters}
        record |= {"history": self.history_, "notes": list(self.notes_)}
        with _new_folder(Path(path)) as fresh:
            self.predictor_.save(fresh)
            write_json(fresh / _RECORD, record)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """What `save` wrote, ready to predict."""
        folder = Path(path)
        if not (folder / _RECORD).is_file():
            raise ArgumentError(f"{path} is not a saved estimator: it holds no {_RECORD}.")
        record = read_json(folder / _RECORD)
        try:
            if record["kind"] != cls.__name__:
                kind = record["kind"]
                raise ArgumentError(f"{path} holds a {kind}: load it with sacm.{kind}.load.")
            estimator = cls(**record["parameters"])
            with _own_randomness():
                estimator._adopt(Predictor.load(folder))
            estimator.history_, estimator.notes_ = record["history"], tuple(record["notes"])
        except ArgumentError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ArgumentError(
                f"{path} is damaged or lacks a file: save the estimator again."
            ) from None
        return estimator


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
