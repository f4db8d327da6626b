"""SACM in pytorch-forecasting, whose models are LightningModules.

Its data sets scale every series before a network gets it, so broken values are repaired in the
frame (`sacm.integrations.shared.repair_frame`), not in the windows.
"""

from __future__ import annotations

from typing import Any

from sacm.errors import ArgumentError
from sacm.inject.window import WindowPath
from sacm.integrations.lightning import AttachCallback
from sacm.integrations.shared import WindowedNetwork


def locate_window(model: Any) -> WindowedNetwork:
    """Return where a model made with `from_dataset` takes its windows: in `encoder_cont`."""
    if not hasattr(model, "target_positions"):
        raise ArgumentError(
            f"{type(model).__name__} does not say where its targets are: use SACMCallback of "
            "sacm.integrations.lightning with channels=… and "
            "input_arg=WindowPath((0, 'encoder_cont'), columns=…)."
        )
    targets = tuple(model.target_positions.tolist())
    return WindowedNetwork(model, len(targets), WindowPath((0, "encoder_cont"), targets))


class SACMCallback(AttachCallback):
    """Attaches before the optimizer is made, and logs the mean dropout rate of every epoch.

    Checkpoints hold the modulator's scalars. To load one without this callback, pass
    `strict=False` to `load_from_checkpoint`.
    """

    locate = staticmethod(locate_window)
