"""SACM in the torch models of GluonTS."""

from __future__ import annotations

from typing import Any

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
