"""Faults in a share of a batch's windows."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from sacm.data.corrupt import corrupt_windows


def break_some(x: Tensor, kinds: Sequence[str], *, share: float, severity: float) -> Tensor:
    """Windows `[B, L, C]`, some of them with one fault of a random kind.

    Args:
        x: Windows of z-scores.
        kinds: Names of faults.
        share: The chance of a window to get one.
        severity: The largest severity; each window draws its own below it.

    Returns:
        A copy with faults, drawn from torch's own generator, which a run seeds for every epoch.
    """
    chosen = torch.rand(len(x)) < share
    family = torch.randint(len(kinds), (len(x),))
    severities = severity * torch.rand(len(x))
    seed = int(torch.randint(2**31, ()))
    broken = x.clone()
    for number, kind in enumerate(kinds):
        rows = torch.nonzero(chosen & (family == number)).squeeze(1)
        if len(rows):
            own = rows.to(x.device)
            broken[own] = corrupt_windows(x[own], kind, severities[rows], seed=seed + number)
    return broken
