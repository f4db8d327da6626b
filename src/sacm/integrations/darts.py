"""SACM in darts, for all its models that are trained with torch.

`model.save`, `load`, `predict` and training after loading work as before: checkpoints hold the raw
network, and a loaded model trains on with new scalars.
"""

from __future__ import annotations

from typing import Any

from darts.utils.serialization.registry import add_safe_globals

from sacm.core.config import SACMConfig
from sacm.inject.window import WindowPath
from sacm.integrations.lightning import AttachCallback
from sacm.integrations.shared import WindowedNetwork

WINDOW = WindowPath((0, "past_target"))  # of `model.model` of a darts model, [B, L, C]


class SACMCallback(AttachCallback):
    """Attaches when a model is fitted, and logs the mean dropout rate of every epoch."""

    raw_checkpoints = True

    def locate(self, pl_module: Any) -> WindowedNetwork:
        """Return the network and its window."""
        return WindowedNetwork(pl_module, pl_module.n_targets, WINDOW)


# darts unpickles only what it knows.
add_safe_globals([SACMCallback, SACMConfig, WindowPath])
