"""What the modulator does when a checkpoint does not know it."""

from __future__ import annotations

from typing import Any

from torch import nn


def keep_own_values(module: nn.Module, state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
    """Let a checkpoint of the raw model load: scalars that it does not hold stay as they are."""
    if not any(key.startswith(prefix) for key in state_dict):
        state_dict.update({prefix + key: value for key, value in module.state_dict().items()})
