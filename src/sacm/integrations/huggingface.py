"""SACM on the time-series models of Hugging Face transformers, also under PEFT."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from transformers import TrainerCallback

from sacm.core.config import SACMConfig
from sacm.errors import ArgumentError
from sacm.inject.attach import attach
from sacm.inject.modulator import CapacityModulator
from sacm.integrations.shared import check_optimizers, load_scalars, modulator_of, save_scalars

WINDOW = "past_values"  # what every time-series model of the library calls its window


def attach_transformer(
    model: nn.Module,
    *,
    config: SACMConfig | None = None,
    channels: int | None = None,
    coverage: Literal["modules", "all"] = "modules",
) -> CapacityModulator:
    """Attach to a model whose forward takes `past_values` `[B, L, C]` (or `[B, L]`).

    Do this before the optimizer is made. `save_pretrained` then writes the modulator's scalars too;
    a raw model ignores them on loading. The adapter files of PEFT do not hold them: use
    `save_scalars` and `load_scalars` of `sacm.integrations.shared`.

    Args:
        model: A model of the library, or a `PeftModel` around one.
        config: Settings of the method.
        channels: Number of channels; read from the model's configuration, or the first batch.
        coverage: As in `sacm.attach`.
    """
    adapted: Any = model
    base = adapted.get_base_model() if _is_adapted(model) else adapted
    if WINDOW not in inspect.signature(base.forward).parameters:
        raise ArgumentError(
            f"{type(base).__name__}.forward takes no {WINDOW}, so it is no time-series model: use "
            "sacm.attach with input_arg=…"
        )
    if channels is None and base.config.model_type.startswith("timesfm"):  # takes single series
        channels = 1
    for name in ("num_input_channels", "input_size"):
        channels = getattr(base.config, name, None) if channels is None else channels
    return attach(model, channels=channels, config=config, input_arg=WINDOW, coverage=coverage)


def _is_adapted(model: Any) -> bool:
    """Return whether PEFT has put adapters into the model."""
    return hasattr(model, "get_base_model") and hasattr(model, "peft_config")


class SACMCallback(TrainerCallback):
    """Attaches when the `Trainer` is made, before its optimizer, and logs the mean dropout rate.

    The checkpoints of a PEFT model get a file with the modulator's scalars, which is read when
    training is resumed from them and when the best of them is loaded. The arguments are those of
    `attach_transformer`.
    """

    def __init__(
        self,
        *,
        config: SACMConfig | None = None,
        channels: int | None = None,
        coverage: Literal["modules", "all"] = "modules",
    ) -> None:
        self.config, self.channels, self.coverage = config, channels, coverage
        self._rates: list[Tensor] = []  # means of the steps since the last log

    def on_init_end(self, args: Any, state: Any, control: Any, **objects: Any) -> None:
        """Attach; a model that is attached already stays as it is."""
        if modulator_of(objects["model"]) is None:
            options: dict[str, Any] = {"channels": self.channels, "coverage": self.coverage}
            attach_transformer(objects["model"], config=self.config, **options)

    def on_train_begin(self, args: Any, state: Any, control: Any, **objects: Any) -> None:
        """Refuse an optimizer that was made too early; load the scalars of a checkpoint."""
        modulator, optimizer = modulator_of(objects["model"]), objects.get("optimizer")
        if modulator is not None and optimizer is not None:
            check_optimizers(modulator, [getattr(optimizer, "optimizer", optimizer)])
        if state.global_step and _is_adapted(objects["model"]):
            load_scalars(objects["model"], _checkpoint(args, state))

    def on_step_end(self, args: Any, state: Any, control: Any, **objects: Any) -> None:
        """Remember the mean rate of a step."""
        modulator = modulator_of(objects["model"])
        if modulator is not None and modulator.rates is not None:
            self._rates.append(modulator.rates.mean())

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **objects: Any) -> None:
        """Add the mean rate since the last training log; logs of an evaluation stay as they are."""
        if logs is not None and "loss" in logs and self._rates:
            mean = float(torch.stack(self._rates).mean())
            self._rates.clear()
            logs["sacm_rate_mean"] = mean  # for reporters, which are asked after this callback
            state.log_history[-1]["sacm_rate_mean"] = mean

    def on_save(self, args: Any, state: Any, control: Any, **objects: Any) -> None:
        """Put the scalars beside the adapters of a PEFT model."""
        model = objects["model"]
        if _is_adapted(model) and modulator_of(model) is not None and args.should_save:
            save_scalars(model, _checkpoint(args, state))

    def on_train_end(self, args: Any, state: Any, control: Any, **objects: Any) -> None:
        """Load the scalars of the best checkpoint of a PEFT model."""
        best = state.best_model_checkpoint if args.load_best_model_at_end else None
        if best and _is_adapted(objects["model"]):
            load_scalars(objects["model"], Path(best))


def _checkpoint(args: Any, state: Any) -> Path:
    """Return the folder of the checkpoint that belongs to the current step."""
    return Path(args.output_dir) / f"checkpoint-{state.global_step}"
