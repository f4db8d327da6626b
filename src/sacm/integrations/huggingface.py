"""SACM on the time-series models of Hugging Face transformers, also under PEFT."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import TrainerCallback

from sacm.core.config import SACMConfig
from sacm.errors import ArgumentError
from sacm.inject.attach import attach
from sacm.inject.modulator import CapacityModulator
from sacm.integrations.shared import Coverage, check_optimizers, modulator_of

WINDOW = "past_values"  # what every time-series model of the library calls its window


def attach_transformer(
    model: nn.Module, *, config: SACMConfig | None = None, coverage: Coverage = "modules"
) -> CapacityModulator:
    """Attach to a model whose forward takes `past_values` `[B, L, C]` (or `[B, L]`).

    Do this before the optimizer is made. `save_pretrained` then writes the modulator's scalars too;
    a raw model ignores them on loading. The adapter files of PEFT do not hold them: save
    ``model.sacm_modulator.state_dict()`` beside them.

    Args:
        model: A model of the library, or a `PeftModel` around one.
        config: As in `sacm.attach`.
        coverage: As there.
    """
    adapted: Any = model
    base = adapted.get_base_model() if _is_adapted(model) else adapted
    if WINDOW not in inspect.signature(base.forward).parameters:
        raise ArgumentError(
            f"{type(base).__name__}.forward takes no {WINDOW}, so it is no time-series model: use "
            "sacm.attach with input_arg=…"
        )
    settings = base.config
    channels = getattr(settings, "num_input_channels", getattr(settings, "input_size", None))
    if settings.model_type.startswith("timesfm"):  # takes single series
        channels = 1
    return attach(model, channels=channels, config=config, input_arg=WINDOW, coverage=coverage)


def _is_adapted(model: Any) -> bool:
    """Return whether PEFT has put adapters into the model."""
    return hasattr(model, "get_base_model") and hasattr(model, "peft_config")


class SACMCallback(TrainerCallback):
    """Attaches when the `Trainer` is made, before its optimizer.

    The checkpoints of a PEFT model get a file with the modulator's scalars, which is read when
    training is resumed from them. The arguments are those of `attach_transformer`.
    """

    def __init__(self, *, config: SACMConfig | None = None, coverage: Coverage = "modules") -> None:
        self.config, self.coverage = config, coverage

    def on_init_end(self, args: Any, state: Any, control: Any, **objects: Any) -> None:
        """Attach; a model that is attached already stays as it is."""
        if modulator_of(objects["model"]) is None:
            attach_transformer(objects["model"], config=self.config, coverage=self.coverage)

    def on_train_begin(self, args: Any, state: Any, control: Any, **objects: Any) -> None:
        """Refuse an optimizer that was made too early; load the scalars of a checkpoint."""
        modulator, optimizer = modulator_of(objects["model"]), objects.get("optimizer")
        if modulator is not None and optimizer is not None:
            check_optimizers(modulator, [getattr(optimizer, "optimizer", optimizer)])
        if modulator is not None and state.global_step and _is_adapted(objects["model"]):
            modulator.load_state_dict(torch.load(_scalars_file(args, state), weights_only=True))

    def on_save(self, args: Any, state: Any, control: Any, **objects: Any) -> None:
        """Put the scalars beside the adapters of a PEFT model."""
        modulator = modulator_of(objects["model"])
        if modulator is not None and _is_adapted(objects["model"]) and args.should_save:
            torch.save(modulator.state_dict(), _scalars_file(args, state))


def _scalars_file(args: Any, state: Any) -> Path:
    """Return the file of the scalars in the checkpoint of the current step."""
    return Path(args.output_dir) / f"checkpoint-{state.global_step}" / "sacm_scalars.pt"
