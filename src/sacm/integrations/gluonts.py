"""SACM in the torch models of GluonTS."""

from __future__ import annotations

from typing import Any

from sacm.integrations.lightning import AttachCallback
from sacm.integrations.shared import WindowedNetwork

WINDOW = "past_target"


class SACMCallback(AttachCallback):
    """Attaches when an estimator is trained, and logs the mean dropout rate of every epoch.

    A saved predictor is a raw one with the trained weights. The scalars stay in
    `callback.modulator`.
    """

    raw_checkpoints = True

    def locate(self, pl_module: Any) -> WindowedNetwork:
        """Return the network, which takes its windows as `past_target`."""
        shape = pl_module.inputs.shapes[WINDOW]  # [B, L], or [B, L, C] for several channels
        return WindowedNetwork(pl_module.model, shape[2] if len(shape) > 2 else 1, WINDOW)
