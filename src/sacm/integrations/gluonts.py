"""SACM and guards in the torch models of GluonTS."""

from __future__ import annotations

from typing import Any

from sacm.inject.window import WindowPath
from sacm.integrations.lightning import AttachCallback
from sacm.integrations.shared import WindowedNetwork

WINDOW = "past_target"


def locate_window(module: Any) -> WindowedNetwork:
    """Return where the network of a LightningModule takes its windows: `past_target`."""
    shape = module.inputs.shapes[WINDOW]  # [B, L], or [B, L, C] for several channels
    return WindowedNetwork(module.model, shape[2] if len(shape) > 2 else 1, WINDOW)


class SACMCallback(AttachCallback):
    """Attaches when an estimator is trained, and logs the mean dropout rate of every epoch.

    A saved predictor is a raw one with the trained weights. The scalars stay in
    `callback.modulator`.
    """

    locate = staticmethod(locate_window)
    raw_checkpoints = True


def protect_predictor(predictor: Any, guard: Any) -> None:
    """Make a trained predictor repair its windows before its network gets them.

    Args:
        predictor: What `estimator.train` returned.
        guard: A fitted `sacm.Guard`, in the units of the data set, for as many rows as
            `past_target` has.
    """
    position = list(predictor.input_names).index(WINDOW)
    # The library calls the forward of the inner network by name, past its hooks.
    network = WindowedNetwork(predictor.prediction_net, input_arg=WindowPath((position,)))
    network.protect(guard)
