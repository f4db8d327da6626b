"""SACM and guards in NeuralForecast, for its models and its automatic models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from neuralforecast.common._base_auto import BaseAuto
from neuralforecast.common._base_model import BaseModel

from sacm.core.config import SACMConfig
from sacm.errors import ArgumentError
from sacm.files import read_weights
from sacm.inject.window import WindowPath
from sacm.integrations.lightning import AttachCallback
from sacm.integrations.shared import WindowedNetwork, put_scalars

if TYPE_CHECKING:
    from neuralforecast import NeuralForecast

WINDOW = WindowPath((0, "insample_y"))


def locate_window(model: BaseModel) -> WindowedNetwork:
    """Return where a model takes its windows: `[B, L, 1]`, or one channel a series."""
    return WindowedNetwork(model, model.n_series if model.MULTIVARIATE else 1, WINDOW)


class SACMCallback(AttachCallback):
    """Attaches when a model is fitted: `NHITS(…, callbacks=[SACMCallback()])`.

    The library copies models and callbacks: look at `nf.models[0].sacm_modulator`.
    """

    locate = staticmethod(locate_window)


def attach_forecaster(
    forecaster: NeuralForecast,
    *,
    config: SACMConfig | None = None,
    coverage: Literal["modules", "all"] = "modules",
    saved: str | Path | None = None,
) -> None:
    """Attach to all models of a `NeuralForecast`; automatic models attach in every trial.

    `fit`, `cross_validation`, `predict`, `save` and `load` work as before. A loaded model is a raw
    model: attach again to train it further.

    Args:
        forecaster: The object, before `fit`.
        config: Settings of the method.
        coverage: As in `sacm.attach`.
        saved: The folder that `forecaster` was loaded from, to go on with the scalars saved there.
    """
    for model in (*forecaster.models_init, *forecaster.models):  # the second are copies
        _add_callback(model, SACMCallback(config=config, coverage=coverage))
    if saved is not None:
        _restore(forecaster, Path(saved))


def _add_callback(model: BaseModel | BaseAuto, callback: SACMCallback) -> None:
    """Put the callback among those of a model, or of the models that an automatic one makes."""
    if isinstance(model, BaseAuto) and callable(model.config):  # Optuna asks a function
        model.config = _SettingsWithCallback(model.config, callback)
        return
    settings = model.config if isinstance(model, BaseAuto) else model.trainer_kwargs
    callbacks = settings.get("callbacks") or []
    if any(isinstance(each, SACMCallback) for each in callbacks):
        raise ArgumentError(f"{model} has a SACMCallback already: attach once.")
    changed = {**settings, "callbacks": [*callbacks, callback]}
    if isinstance(model, BaseAuto):
        model.config = changed
    else:
        model.trainer_kwargs = changed


class _SettingsWithCallback:
    """The settings that Optuna's trials use, and our callback among them."""

    def __init__(self, config: Callable[[Any], dict[str, Any]], callback: SACMCallback) -> None:
        self.config, self.callback = config, callback

    def __call__(self, trial: Any) -> dict[str, Any]:
        settings = self.config(trial)
        return {**settings, "callbacks": [*settings.get("callbacks", []), self.callback]}


def _restore(forecaster: NeuralForecast, folder: Path) -> None:
    """Attach the models of a loaded object now, with the scalars of its folder."""
    count: dict[str, int] = {}
    for pair in zip(forecaster.models, forecaster.models_init, strict=True):
        name = repr(pair[0])
        index = count[name] = count.get(name, -1) + 1
        file = folder / f"{name}_{index}.safetensors"
        scalars = read_weights(file)
        for model in pair:
            callback = model.trainer_kwargs["callbacks"][-1]
            callback.change(locate_window(model))
            put_scalars(callback.modulator, scalars, str(file))


def protect_forecaster(forecaster: NeuralForecast, guard: Any) -> None:
    """Make fitted models repair their windows before they predict.

    Args:
        forecaster: The object, after `fit` or `load`.
        guard: A `sacm.Guard` fitted on the training frame, with `input_size` as its window.

    Raises:
        ArgumentError: The object or a model scales the windows; use `repair_frame` then.
    """
    for model in forecaster.models:
        inner = model.model if isinstance(model, BaseAuto) else model
        scaling = inner.hparams.get("scaler_type") or "identity"
        if forecaster.local_scaler_type is not None or scaling != "identity":
            raise ArgumentError(
                f"{inner} gets scaled windows (local_scaler_type="
                f"{forecaster.local_scaler_type!r}, scaler_type={scaling!r}), which a guard of the "
                "frame's units cannot judge: repair the frame with repair_frame instead."
            )
        locate_window(inner).protect(guard)
