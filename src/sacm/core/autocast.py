"""Arithmetic that autocast leaves alone."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch


def without_autocast(device_type: str) -> AbstractContextManager[object]:
    """Autocast switched off; nothing at all where it is off, for switching costs microseconds."""
    if torch.is_autocast_enabled(device_type):
        return torch.autocast(device_type, enabled=False)
    return nullcontext()
