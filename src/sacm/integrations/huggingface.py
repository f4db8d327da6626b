"""SACM on the time-series models of Hugging Face transformers.

modulator = attach_transformer(PatchTSTForPrediction(config))           # any loop
trainer = Trainer(model, arguments, callbacks=[SACMCallback()], …)      # the library's own
"""

from __future__ import annotations

import inspect
from typing import Any, Literal

import torch
from torch import Tensor
from transformers import PreTrainedModel, TrainerCallback

from sacm.core.config import SACMConfig
from sacm.errors import ArgumentError
from sacm.inject.attach import attach
from sacm.inject.modulator import CapacityModulator
from sacm.integrations.attached import check_optimizers, modulator_of

WINDOW = "past_values"  # what every time-series model of the library calls its window
CHANNELS = ("num_input_channels", "input_size")


def attach_transformer(
    model: PreTrainedModel,
    *,
    config: SACMConfig | None = None,
    channels: int | None = None,
    coverage: Literal["modules", "all"] = "modules",
) -> CapacityModulator:
    """Attach to a model whose forward takes `past_values` `[B, L, C]` (or `[B, L]`).

    `channels` is read from the model's configuration where that says it. Do this before the
    optimizer is made. `save_pretrained` then writes the modulator's scalars too; a raw model
    ignores them on loading.
    """
    if WINDOW not in inspect.signature(model.forward).parameters:
        raise ArgumentError(
            f"{type(model).__name__}.forward takes no {WINDOW}, so it is no time-series model: use "
            "sacm.attach with input_arg=…"
        )
    if channels is None:
        found = (getattr(model.config, name, None) for name in CHANNELS)
        channels = next((count for count in found if count is not None), None)
    if channels is None:
        raise ArgumentError(
            f"the configuration of {type(model).__name__} does not say how many channels its "
            "windows have: pass channels=…"
        )
    return attach(model, channels=channels, config=config, input_arg=WINDOW, coverage=coverage)


class SACMCallback(TrainerCallback):
    """Attaches when the `Trainer` is made, before its optimizer, and logs the mean dropout rate."""

    def __init__(
        self,
        *,
        config: SACMConfig | None = None,
        channels: int | None = None,
        coverage: Literal["modules", "all"] = "modules",
    ) -> None:
        self.config, self.channels, self.coverage = config, channels, coverage
        self._rates: list[Tensor] = []

    def on_init_end(
        self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any
    ) -> None:
        """Attach; a model that is attached already stays as it is."""
        if modulator_of(model) is None:
            attach_transformer(
                model, config=self.config, channels=self.channels, coverage=self.coverage
            )

    def on_train_begin(
        self,
        args: Any,
        state: Any,
        control: Any,
        model: Any = None,
        optimizer: Any = None,
        **kwargs: Any,
    ) -> None:
        """Complain if the optimizer was made too early."""
        modulator = modulator_of(model)
        if modulator is not None and optimizer is not None:
            check_optimizers(modulator, [getattr(optimizer, "optimizer", optimizer)])

    def on_step_end(
        self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any
    ) -> None:
        """Remember the mean rate of a step."""
        modulator = modulator_of(model)
        if modulator is not None and modulator.rates is not None:
            self._rates.append(modulator.rates.mean())

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """Add the mean rate since the last log."""
        if logs is not None and self._rates:
            mean = float(torch.stack(self._rates).mean())
            logs["sacm_rate_mean"] = mean  # for reporters, which are asked after this callback
            state.log_history[-1]["sacm_rate_mean"] = mean
            self._rates.clear()
