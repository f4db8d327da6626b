"""SACM and guards in PyPOTS, whose models are trained on series with gaps.

model = SAITS(n_steps=48, n_features=3, …)
modulator = attach_model(model)
model.fit({"X": X})
"""

from __future__ import annotations

import warnings
from typing import Any, Literal

from torch import nn

from sacm.core.config import SACMConfig
from sacm.errors import ArgumentError
from sacm.inject.attach import attach
from sacm.inject.modulator import CapacityModulator
from sacm.inject.window import WindowPath
from sacm.integrations.shared import WindowedNetwork

WINDOW = WindowPath((0, "X"))


def locate_window(model: Any) -> WindowedNetwork:
    """Return where a model of the library takes its windows: `X` `[B, L, C]`.

    Args:
        model: A neural model of the library.

    Raises:
        ArgumentError: The model has no network, such as `LOCF`.
    """
    network, channels = getattr(model, "model", None), getattr(model, "n_features", None)
    if not isinstance(network, nn.Module) or channels is None:
        raise ArgumentError(f"{type(model).__name__} has no network that takes windows.")
    return WindowedNetwork(network, channels, WINDOW)


def attach_model(
    model: Any,
    *,
    config: SACMConfig | None = None,
    coverage: Literal["modules", "all"] = "modules",
) -> CapacityModulator:
    """Attach to a model of the library, and make its optimizer again so that it holds the scalars.

    `fit`, `predict`, `save` and `load` work as before; load into a model that is attached to read
    the scalars too. Missing values reach the network as zeros, so windows with many gaps are
    scored as what the network sees.

    Args:
        model: A neural model of the library, before `fit`.
        config: Settings of the method.
        coverage: As in `sacm.attach`.

    Returns:
        The modulator.

    Raises:
        ArgumentError: The model has no network or several optimizers.
    """
    network, channels, input_arg, _ = locate_window(model)
    optimizer = getattr(model, "optimizer", None)
    if optimizer is None:
        raise ArgumentError(
            f"{type(model).__name__} has not one optimizer: attach to its network and make its "
            "optimizers again."
        )
    modulator = attach(
        network, channels=channels, config=config, input_arg=input_arg, coverage=coverage
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of schedulers that are made a second time
        optimizer.init_optimizer(network.parameters())
    return modulator
