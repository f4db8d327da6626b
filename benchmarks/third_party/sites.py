"""Models that mix windows themselves (means over the batch) are judged at their dropout modules."""

from __future__ import annotations

import random
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.third_party.case import BATCH, Case


def check_sites(case: Case, modulator: Any) -> str:
    """What a window's rate drops must be entries that the window itself moves.

    Returns:
        What is wrong, or an empty text. Entries that several windows move belong to each of them.
    """
    order = torch.arange(BATCH)
    calm = _record(case, modulator, torch.zeros(BATCH), order)
    for window in range(BATCH):
        other = order.clone()
        other[window] = (window + 1) % BATCH
        moved = _record(case, modulator, torch.zeros(BATCH), other)
        rates = torch.zeros(BATCH)
        rates[window] = 0.9
        dropped = _record(case, modulator, rates, order)
        for before, after, seen in zip(calm, moved, dropped, strict=True):
            entered, left = seen
            foreign = (before[0] == after[0]) & (before[0] != 0)
            if bool(((left == 0) & (entered != 0) & foreign).any()):
                return f"the rate of window {window} drops entries of another"
    return ""


def _record(
    case: Case, modulator: Any, rates: Tensor, order: Tensor
) -> list[tuple[Tensor, Tensor]]:
    """Return what enters and leaves each dropout module in a training forward."""
    seen: list[tuple[Tensor, Tensor]] = []

    def hook(_module: nn.Module, args: Any, output: Any) -> None:
        seen.append((args[0].clone(), output.clone()))

    kinds = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)
    handles = [m.register_forward_hook(hook) for m in case.model.modules() if isinstance(m, kinds)]
    random.seed(0)
    torch.manual_seed(0)
    try:
        with modulator.forced_rates(rates), torch.no_grad():
            case.run(order)
    finally:
        for handle in handles:
            handle.remove()
    return seen
