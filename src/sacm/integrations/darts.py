"""SACM and guards in darts, for all its models that are trained with torch.

`model.save`, `load`, `predict` and training after loading work as before: checkpoints hold the raw
network, and a loaded model trains on with new scalars.
"""

from __future__ import annotations

from typing import Any

from darts.utils.serialization.registry import add_safe_globals
from lightning.pytorch import Callback

from sacm.core.config import SACMConfig
from sacm.inject.window import WindowPath
from sacm.integrations.lightning import AttachCallback
from sacm.integrations.shared import WindowedNetwork
from sacm.quality.protect import window_guard_of
from sacm.quality.windows import WindowGuard

WINDOW = WindowPath((0, "past_target"))


def locate_window(module: Any) -> WindowedNetwork:
    """Return where `model.model` of a darts model takes its windows: past targets `[B, L, C]`."""
    return WindowedNetwork(module, module.n_targets, WINDOW)


class SACMCallback(AttachCallback):
    """Attaches when a model is fitted, and logs the mean dropout rate of every epoch."""

    locate = staticmethod(locate_window)
    raw_checkpoints = True


class ProtectCallback(Callback):
    """Makes the network repair its windows, in training and in prediction.

    Args:
        guard: A fitted `sacm.Guard`, in the units of the series, for `input_chunk_length` rows.
    """

    def __init__(self, guard: Any) -> None:
        self.guard: Any = window_guard_of(guard)

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Protect the network."""
        locate_window(pl_module).protect(self.guard)

    def __getstate__(self) -> dict[str, Any]:
        """Save the guard as plain numbers, which darts loads without being told to trust them."""
        return {"guard": dict(self.guard.state_dict())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make the guard again."""
        self.guard = WindowGuard(state["guard"]).eval()


# darts unpickles only what it knows.
add_safe_globals([SACMCallback, ProtectCallback, SACMConfig, WindowPath, locate_window])
