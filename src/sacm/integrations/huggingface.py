"""SACM on the time-series models of Hugging Face transformers, also under PEFT."""

from __future__ import annotations

import inspect
from typing import Any

from torch import nn

from sacm.core.config import SACMConfig
from sacm.errors import ArgumentError
from sacm.inject.attach import attach
from sacm.inject.modulator import CapacityModulator
from sacm.integrations.shared import Coverage

WINDOW = "past_values"  # what every time-series model of the library calls its window


def attach_transformer(
    model: nn.Module, *, config: SACMConfig | None = None, coverage: Coverage = "modules"
) -> CapacityModulator:
    """Attach to a model whose forward takes `past_values` `[B, L, C]` (or `[B, L]`).

    Do this before the optimizer or the `Trainer` is made. `save_pretrained` then writes the
    modulator's scalars too; a raw model ignores them on loading. The adapter files of PEFT do not
    hold them: save ``model.sacm_modulator.state_dict()`` beside them.

    Args:
        model: A model of the library, or a `PeftModel` around one.
        config: As in `sacm.attach`.
        coverage: As there.
    """
    base: Any = getattr(model, "get_base_model", lambda: model)()  # of a `PeftModel`
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
