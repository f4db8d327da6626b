"""Statistics, spectra and divergences keep at least float32, whatever the rest runs in."""

from __future__ import annotations

import torch
from torch import Tensor


def full_precision(x: Tensor) -> torch.autocast:
    """Context in which autocast is off on the device of `x`."""
    return torch.autocast(x.device.type, enabled=False)


def widen(x: Tensor) -> Tensor:
    """Half-width floats become float32; float32 and float64 stay."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
