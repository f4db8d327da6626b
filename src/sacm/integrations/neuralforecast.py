"""SACM and guards in NeuralForecast."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neuralforecast.common._base_auto import BaseAuto
from neuralforecast.common._base_model import BaseModel

from sacm.core.config import SACMConfig
from sacm.errors import ArgumentError
from sacm.inject.window import WindowPath
from sacm.integrations.lightning import AttachCallback
from sacm.integrations.shared import Coverage, WindowedNetwork
from sacm.quality.protect import protect, unprotect

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
    forecaster: NeuralForecast, *, config: SACMConfig | None = None, coverage: Coverage = "modules"
) -> None:
    """Attach to all models of a `NeuralForecast`.

    `fit`, `cross_validation`, `predict`, `save` and `load` work as before. A loaded model is a raw
    model: attach again to train it further, with new scalars. For automatic models put a
    `SACMCallback` among the `callbacks` of their config.

    Args:
        forecaster: The object, before `fit`.
        config: As in `sacm.attach`.
        coverage: As there.
    """
    for model in (*forecaster.models_init, *forecaster.models):  # the second are copies
        if isinstance(model, BaseAuto):
            raise ArgumentError(
                f"{model} makes its models itself: put SACMCallback() among the callbacks of its "
                "config."
            )
        callbacks = model.trainer_kwargs.get("callbacks") or []
        if any(isinstance(each, SACMCallback) for each in callbacks):
            raise ArgumentError(f"{model} has a SACMCallback already: attach once.")
        added = SACMCallback(config=config, coverage=coverage)
        model.trainer_kwargs = {**model.trainer_kwargs, "callbacks": [*callbacks, added]}


def protect_forecaster(forecaster: NeuralForecast, guard: Any) -> None:
    """Make fitted models repair their windows before they predict.

    Where the object or a model scales the windows this is refused: use `repair_frame` then.

    Args:
        forecaster: The object, after `fit` or `load`.
        guard: A `sacm.Guard` fitted on the training frame, with `input_size` as its window.
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
        protect(unprotect(inner), guard, input_arg=WINDOW)
