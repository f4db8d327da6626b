"""What the three estimators share: parameters, one training run, fitted state, save and load."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from inspect import Parameter, Signature, getdoc
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
# Parameters of all estimators that are no settings of a run: default and help.
_BESIDE_SETTINGS: dict[str, tuple[Any, str]] = {
    "overrides": (None, "Settings of the backbone by name, a dict."),
    "accelerator": ("auto", "auto, cpu, gpu or mps."),
    "folder": (None, "Keep the training run there; it is not repeated for the same data."),
    "verbose": (False, "Whether progress is shown."),
}


class NotFittedError(ArgumentError, sklearn.exceptions.NotFittedError):
    """Something was asked of an estimator that has not been fitted."""


class Estimator(BaseEstimator):
    """Base of the estimators: parameters are the settings of a run, with the same defaults.

    Signature and help of a subclass are made from `sacm.settings.RunSettings`. A subclass states
    its task and builds the task's data in `fit`. `backbone` may be given without its name.

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

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        task = get_task(cls._task)
        skipped = {"task", "data", "contamination", "watch", *task.unused, *cls._without}
        # How data are read comes last.
        fields = sorted(RunSettings.model_fields.items(), key=lambda item: item[0] in READING)
        helps = {n: (f.default, f.description) for n, f in fields if n not in skipped}
        helps |= {**cls._added, **_BESIDE_SETTINGS}
        defaults = {name: default for name, (default, _) in helps.items()}
        defaults["strategy"] = task.default_strategy
        # Without one, candidates compete to forecast.
        backbone = None if cls._task == "forecasting" else task.default_backbone
        positional = Parameter.POSITIONAL_OR_KEYWORD
        first = [Parameter("self", positional), Parameter("backbone", positional, default=backbone)]
        rest = [Parameter(n, Parameter.KEYWORD_ONLY, default=d) for n, d in defaults.items()]
        signature = Signature([*first, *(each for each in rest if each.name != "backbone")])

        def store(self: Estimator, *arguments: Any, **named: Any) -> None:
            bound = signature.bind(self, *arguments, **named)
            bound.apply_defaults()
            self.__dict__.update(list(bound.arguments.items())[1:])

        store.__signature__ = signature  # type: ignore[attr-defined]
        cls.__init__ = store  # type: ignore[method-assign]
        lines = "\n".join(f"    {name}: {text}" for name, (_, text) in helps.items())
        text, example, code = (getdoc(cls) or "").partition("Example:")
        cls.__doc__ = f"{text}Args:\n{lines}\n\n{example}{code}"

    def __init__(self, backbone: str | None = None, **parameters: Any) -> None:
        """Store the parameters; every subclass has its own version, made by the class itself."""

    def _settings(self, name: str, **others: Any) -> RunSettings:
        """The parameters as the settings of a run on the data called `name`."""
        values = {k: v for k, v in self.get_params().items() if k in RunSettings.model_fields}
        values |= {"task": self._task, "data": name, "overrides": self.overrides or {}, **others}
        return make_settings(**_plain(values))

    def _train(self, settings: RunSettings, data: Any) -> None:
        hardware = Hardware(accelerator=self.accelerator, show_progress=self.verbose)
        with _own_randomness(), tempfile.TemporaryDirectory(prefix="sacm-") as temporary:
            folder = Path(self.folder or temporary)
            run = train(settings, folder=folder, hardware=hardware, data=data)
            self._adopt(Predictor.load(run))
            self.history_ = [{k: float(v) for k, v in row.items()} for row in run.history]
            self.notes_ = (*data.notes, *run.metrics.get("notes", ()))

    def _adopt(self, predictor: Predictor) -> None:
        self.predictor_ = predictor
        self.model_, self.settings_ = predictor.network, predictor.settings
        self.scaler_, self.n_features_in_ = predictor.scaler, predictor.shape.channels

    @property
    def _fitted(self) -> Predictor:
        if not hasattr(self, "predictor_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted: call fit first.")
        return self.predictor_

    def save(self, path: str | Path) -> None:
        """Write a folder for `load` and `Predictor.load`, whole or not at all; without data."""
        predictor, path = self._fitted, Path(path)
        record = {"kind": type(self).__name__, "parameters": _plain(self.get_params(deep=False))}
        if path.exists() and not (path / _RECORD).is_file():
            raise ArgumentError(f"{path} exists and is no saved estimator: choose another place.")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            holder = tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.")
        except OSError as error:
            raise ArgumentError(f"{path} cannot be written ({error.strerror}).") from error
        with holder:
            fresh = Path(holder.name) / "new"
            predictor.save(fresh)
            write_json(fresh / _RECORD, {**record, "history": self.history_, "notes": self.notes_})
            if path.exists():
                path.rename(fresh.with_name("old"))
            fresh.rename(path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """What `save` wrote, ready to predict."""
        folder = Path(path)
        if not (folder / _RECORD).is_file():
            raise ArgumentError(f"{path} is not a saved estimator: it holds no {_RECORD}.")
        record = read_json(folder / _RECORD)
        if {"kind", "parameters", "history", "notes"} - {*record}:
            raise ArgumentError(f"{path} is damaged: save the estimator again.")
        kind = record["kind"]
        if kind != cls.__name__:
            raise ArgumentError(f"{path} holds a {kind}: load it with sacm.{kind}.load.")
        estimator = cls(**record["parameters"])
        with _own_randomness():
            estimator._adopt(Predictor.load(folder))
        estimator.history_, estimator.notes_ = record["history"], tuple(record["notes"])
        return estimator


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as JSON can hold them; arrays are lists and paths text."""
    try:
        text = json.dumps(
            values, default=lambda v: str(v) if isinstance(v, Path) else v.tolist(), allow_nan=False
        )
    except (AttributeError, TypeError, ValueError) as error:
        raise ArgumentError(f"a parameter is no plain value: {error}.") from None
    return dict(json.loads(text))


def _own_randomness() -> ExitStack:
    """Training seeds everything; the caller's random numbers go on as if it had not."""
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    stack = ExitStack()
    stack.callback(random.setstate, random.getstate())
    stack.callback(np.random.set_state, np.random.get_state())
    stack.enter_context(torch.random.fork_rng(devices))
    return stack
