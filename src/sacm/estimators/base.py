"""What the three estimators share: settings, one training run, the fitted state, save and load."""

from __future__ import annotations

import random
import tempfile
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import sklearn.exceptions
import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from sacm.backbones.base import Backbone
from sacm.data.scaling import ChannelScaler
from sacm.errors import ArgumentError
from sacm.estimators.parameters import settings_of
from sacm.estimators.storage import Saved, read_saved, to_json_value, write_saved
from sacm.inference.predictor import Predictor
from sacm.settings import ResolvedSettings, RunSettings
from sacm.tasks import get_task, make_settings
from sacm.training import Hardware, train
from sacm.types import TaskName


class NotFittedError(ArgumentError, sklearn.exceptions.NotFittedError):
    """Something was asked of an estimator that has not been fitted."""


class Estimator(BaseEstimator):
    """Base of the estimators.

    A subclass states its task, builds the task's data container in `fit`, and says what besides
    the network it must keep (`_kept`, `_restore`).

    Attributes after `fit`:
        predictor_: answers questions about new data, for all three tasks alike.
        model_: the network, in evaluation mode.
        settings_: everything that decided the result.
        scaler_: mean and deviation of every channel of the training rows.
        history_: one row an epoch.
        notes_: what was repaired in the training data.
        n_features_in_: number of channels.
    """

    _task: ClassVar[TaskName]

    overrides: dict[str, Any] | None
    strategy: str | None
    guard: bool
    accelerator: str
    folder: str | Path | None
    verbose: bool

    predictor_: Predictor
    model_: Backbone
    settings_: ResolvedSettings
    scaler_: ChannelScaler
    history_: list[dict[str, float]]
    notes_: tuple[str, ...]
    n_features_in_: int

    def _settings(self, name: str, **others: Any) -> RunSettings:
        """The parameters as the settings of a run on the data called `name`."""
        strategy = self.strategy or get_task(self._task).default_strategy
        if self.guard and "guard" not in strategy:
            strategy = "guard" if strategy == "raw" else f"guard+{strategy}"
        values = {
            **settings_of(self),
            "strategy": strategy,
            "task": self._task,
            "data": name,
            "overrides": self.overrides or {},
            **others,
        }
        return make_settings(**{key: to_json_value(value) for key, value in values.items()})

    def _train(self, settings: RunSettings, data: Any) -> None:
        """Train on a data container and keep the outcome."""
        hardware = Hardware(accelerator=self.accelerator, show_progress=self.verbose)
        with _own_randomness(), _run_folder(self.folder) as folder:
            run = train(settings, folder=folder, hardware=hardware, data=data)
            self._adopt(Predictor.load(run))
            self.history_ = [{k: float(v) for k, v in row.items()} for row in run.history]
            self.notes_ = (*data.notes, *run.metrics.get("notes", ()))

    def _adopt(self, predictor: Predictor) -> None:
        """Take over a trained network."""
        self.predictor_ = predictor
        self.model_ = predictor.network
        self.settings_ = predictor.settings
        self.scaler_ = predictor.scaler
        self.n_features_in_ = predictor.shape.channels

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` has been called."""
        return hasattr(self, "model_")

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"this {type(self).__name__} is not fitted: call fit first.")

    @abstractmethod
    def _kept(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """What `load` needs besides network, settings and scaler: plain values and tensors."""

    @abstractmethod
    def _restore(self, values: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        """Put back what `_kept` gave."""

    def save(self, path: str | Path) -> None:
        """Write a folder of JSON and safetensors, whole or not at all."""
        self._check_fitted()
        values, tensors = self._kept()
        saved = Saved(
            kind=type(self).__name__,
            parameters={
                key: to_json_value(value) for key, value in self.get_params(deep=False).items()
            },
            values={**values, "history": self.history_, "notes": list(self.notes_)},
            tensors=tensors,
        )
        write_saved(Path(path), saved, self.predictor_)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """What `save` wrote, ready to predict."""
        saved = read_saved(Path(path))
        if saved.kind != cls.__name__:
            raise ArgumentError(
                f"{path} holds a {saved.kind}: load it with sacm.{saved.kind}.load."
            )
        try:
            estimator = cls(**saved.parameters)
            with _own_randomness():
                estimator._adopt(Predictor.load(path))
                estimator._restore(saved.values, saved.tensors)
            estimator.history_ = saved.values["history"]
            estimator.notes_ = tuple(saved.values["notes"])
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ArgumentError(
                f"{path} is damaged or lacks a file: save the estimator again."
            ) from None
        return estimator


def check_share(name: str, value: Any) -> None:
    """Refuse what is no number between 0 and 1."""
    if not isinstance(value, Real) or not 0 < float(value) < 1:
        raise ArgumentError(f"{name} must be between 0 and 1, got {value!r}.")


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


@contextmanager
def _run_folder(folder: str | Path | None) -> Iterator[Path]:
    """The user's folder for runs, or one that is gone afterwards."""
    if folder is not None:
        yield Path(folder)
        return
    with tempfile.TemporaryDirectory(prefix="sacm-") as temporary:
        yield Path(temporary)
