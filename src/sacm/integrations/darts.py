"""SACM and guards in darts, for all its models that are trained with torch.

model = TransformerModel(24, 6, pl_trainer_kwargs={"callbacks": [SACMCallback()]})
model.fit(series, sample_weight=…)

`model.save`, `load`, `predict` and training after loading work as before: the saved callback
carries the modulator's scalars, and darts' checkpoint stays that of the raw network.
"""

from __future__ import annotations

from typing import Any, Literal

from darts.utils.serialization.registry import add_safe_globals
from torch import Tensor

from sacm.core.config import SACMConfig
from sacm.inject.state import MODULATOR
from sacm.integrations.attached import WindowedNetwork
from sacm.integrations.network_callbacks import AttachCallback, GuardCallback
from sacm.integrations.scalars import put_scalars
from sacm.integrations.window_path import WindowPath

WINDOW = WindowPath((0, "past_target"))


def locate_window(module: Any) -> WindowedNetwork:
    """Return where a network of the library takes its windows: the past targets `[B, L, C]`.

    Args:
        module: `model.model` of a darts model.
    """
    return WindowedNetwork(module, module.n_targets, WINDOW)


class SACMCallback(AttachCallback):
    """Attaches when a model is fitted, and logs the mean dropout rate of every epoch.

    Args:
        config: Settings of the method.
        coverage: As in `sacm.attach`.
    """

    def __init__(
        self,
        *,
        config: SACMConfig | None = None,
        coverage: Literal["modules", "all"] = "modules",
    ) -> None:
        super().__init__(locate_window, config=config, coverage=coverage)
        self._scalars: dict[str, Tensor] = {}

    def change(self, found: WindowedNetwork) -> None:
        """Attach, with the scalars that this callback was saved with if there are any."""
        super().change(found)
        if self._scalars and self.modulator is not None:
            put_scalars(self.modulator, self._scalars, "the saved callback")
            self._scalars = {}

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: Any) -> None:
        """Leave the checkpoint to the raw network: darts refuses keys that it does not know."""
        weights = checkpoint["state_dict"]
        for key in [key for key in weights if MODULATOR in key.split(".")]:
            del weights[key]

    def __getstate__(self) -> dict[str, Any]:
        """Carry the scalars in place of the modulator."""
        held = {} if self.modulator is None else self.modulator.state_dict()
        scalars = {key: value.detach().clone() for key, value in held.items()} or self._scalars
        return {**super().__getstate__(), "_scalars": scalars}


class ProtectCallback(GuardCallback):
    """Makes the network repair its windows, in training and in prediction.

    Args:
        guard: A `sacm.Guard` or `WindowGuard`, fitted in the units of the series that the model is
            given, with `input_chunk_length` as its window.
    """

    def __init__(self, guard: Any) -> None:
        super().__init__(locate_window, guard)


# darts unpickles only what it knows.
add_safe_globals([SACMCallback, ProtectCallback, SACMConfig, WindowPath, locate_window])
