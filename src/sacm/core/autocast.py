"""Switch autocast off for arithmetic that needs full precision."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch


def without_autocast(device_type: str) -> AbstractContextManager[object]:
    """Return a context in which autocast is off.

    Where autocast is off already, the context does nothing, because switching costs microseconds.
    """
    if torch.is_autocast_enabled(device_type):
        return torch.autocast(device_type, enabled=False)
    return nullcontext()
