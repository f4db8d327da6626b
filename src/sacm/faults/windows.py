"""Faults in windows `[B, L, C]` of z-scores, each window with a severity between 0 and 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from sacm.errors import ArgumentError
from sacm.faults.catalogue import FAULTS
from sacm.faults.channel import Channel
from sacm.faults.series import choose_channels, series_parts
from sacm.faults.window_operators import TESTED, TRANSFER

__all__ = ["TESTED", "TRANSFER", "break_windows"]


def break_windows(
    x: Tensor,
    kind: str,
    severity: Tensor | float,
    *,
    channels: Sequence[int] | None = None,
    seed: int = 0,
) -> Tensor:
    """Windows with one fault each.

    Args:
        x: z-scores [B, L, C].
        kind: a fault. One that is defined for series only breaks a share `severity` of the steps
            of every channel.
        severity: [B] or one number, between 0 and 1.
        channels: positions of the channels that may be broken; all if None.
        seed: of the channels, places and noise.

    Returns:
        Broken windows; `x` stays as it is.

    Raises:
        ArgumentError: If an argument is none of these.

    Example:
        >>> x = torch.randn(4, 96, 3)
        >>> broken = break_windows(x, "stuck_sensor", 0.5, seed=1)
        >>> broken.shape, torch.equal(broken, x)
        (torch.Size([4, 96, 3]), False)
    """
    fault = FAULTS.get(kind)
    if x.dim() != 3 or x.shape[1] < 2:
        raise ArgumentError(f"Windows must be [B, L, C] with L of 2 or more, got {list(x.shape)}.")
    s = torch.as_tensor(severity, dtype=torch.float32).expand(len(x)).cpu()
    if not bool(((s >= 0) & (s <= 1)).all()):
        raise ArgumentError("severity must lie between 0 and 1.")
    plain = x.detach().float().cpu()
    if fault.windows is not None:
        broken = fault.windows(plain, s, torch.Generator().manual_seed(seed))
    else:
        broken = _break_each(plain, kind, s, seed)
    if channels is not None:
        chosen = torch.zeros(x.shape[2], dtype=torch.bool)
        chosen[choose_channels(channels, x.shape[2])] = True
        broken = torch.where(chosen, broken, plain)
    return broken.to(device=x.device, dtype=x.dtype)


def _break_each(x: Tensor, kind: str, severity: Tensor, seed: int) -> Tensor:
    """Every channel of every window as a short series whose deviation is 1."""
    parts = series_parts(kind)
    random = np.random.default_rng(seed)
    result = x.double().numpy().copy()
    for window, ratio in zip(result, severity.tolist(), strict=True):
        for c in range(window.shape[1]):
            kinds = np.zeros(len(window), np.uint8)
            channel = Channel(window[:, c], kinds, 0.0, 1.0, mixed=len(parts) > 1)
            for code, fault in enumerate(parts.values(), 1):
                fault(channel, ratio / len(parts), code, random)
    return torch.from_numpy(result).float()
