"""SACM and guards in darts, for all its models that are trained with torch.

`model.save`, `load`, `predict` and training after loading work as before: the scalars are the state
of the callback in darts' checkpoint, whose weights stay those of the raw network.
"""

from __future__ import annotations

from typing import Any

from darts.utils.serialization.registry import add_safe_globals
from torch import nn

from sacm.core.config import SACMConfig
from sacm.inject.window import WindowPath
from sacm.integrations.lightning import AttachCallback, NetworkCallback
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

    def change(self, windowed: WindowedNetwork) -> None:
        """Attach, and give losses and metrics their own forward back: checkpoints hold them."""
        super().change(windowed)
        names = ("criterion", "train_criterion", "val_criterion", "train_metrics", "val_metrics")
        held = [getattr(windowed.network, name, None) for name in names]
        beside = {part for each in held if isinstance(each, nn.Module) for part in each.modules()}
        assert self.modulator is not None
        for stand_in in [*self.modulator.stand_ins]:
            if stand_in.module in beside:
                self.modulator.remove(stand_in)


class ProtectCallback(NetworkCallback):
    """Makes the network repair its windows, in training and in prediction.

    Args:
        guard: A fitted `sacm.Guard`, in the units of the series, for `input_chunk_length` rows.
    """

    locate = staticmethod(locate_window)

    def __init__(self, guard: Any) -> None:
        self.guard: Any = window_guard_of(guard)

    def change(self, windowed: WindowedNetwork) -> None:
        """Protect the network."""
        windowed.protect(self.guard)

    def __getstate__(self) -> dict[str, Any]:
        """Save the guard as plain numbers, which darts loads without being told to trust them."""
        return {"guard": dict(self.guard.state_dict())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make the guard again."""
        self.guard = WindowGuard(state["guard"]).eval()


# darts unpickles only what it knows.
add_safe_globals([SACMCallback, ProtectCallback, SACMConfig, WindowPath, locate_window])
