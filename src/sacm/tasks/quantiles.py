"""How good the quantiles of a network are, over every window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from sacm.backbones.base import Backbone
from sacm.backbones.quantiles import find_levels
from sacm.data.batches import beside_windows
from sacm.data.loader import WindowBatches
from sacm.errors import ArgumentError
from sacm.metrics.intervals import Record
from sacm.strategies.base import Strategy
from sacm.tasks.base import evaluating, to_device
from sacm.tasks.yardsticks import units_of


@dataclass(frozen=True)
class QuantileReport(Record):
    """What the quantiles of a network did, in scaled units.

    Attributes:
        levels: The Q levels.
        below: The share of targets at or below each quantile, `[Q]`; as large as its level if the
            quantiles are right.
        nominal: What pairs of quantiles should enclose, the narrowest first.
        coverage: What they enclosed.
        width: How wide they were in the mean.
        crps: Twice the mean pinball loss over the levels.
    """

    levels: tuple[float, ...]
    below: tuple[float, ...]
    nominal: tuple[float, ...]
    coverage: tuple[float, ...]
    width: tuple[float, ...]
    crps: float


def ask_network(model: Any, batch: Any, x: Tensor) -> Tensor:
    """The answer to windows `x` `[B, L, C]`: `[B, H, C]`, or `[B, H, C, Q]` with quantiles."""
    answer: Tensor = model(x, *beside_windows(batch))
    return answer


def measure_quantiles(
    model: Backbone, batches: WindowBatches[Any], strategy: Strategy, units: Tensor | None = None
) -> QuantileReport:
    """Test quantiles on all batches; `units` multiplies errors and widths.

    Raises:
        ArgumentError: The network gives none.
    """
    levels = find_levels(model)
    if levels is None:
        raise ArgumentError("the network gives no quantiles: train it with train_quantiles.")
    level = torch.tensor(levels, dtype=torch.float64)
    half = len(levels) // 2
    count, below, loss = torch.zeros(()), torch.zeros(len(levels)), torch.zeros(())
    inside, width = torch.zeros(half), torch.zeros(half)
    with evaluating(model) as device:
        for batch in batches:
            batch = to_device(batch, device)
            found = ask_network(model, batch, strategy.inputs(batch.x)).cpu().double()
            truth = batch.y.cpu().double().unsqueeze(-1)  # [B, H, C, 1]
            seen = torch.ones_like(truth)
            if batch.observed is not None:
                seen = batch.observed.cpu().double().unsqueeze(-1)
            unit = 1.0 if units is None else units_of(units, batch).unsqueeze(-1).double()
            error = truth - found
            low, high = found[..., :half].flip(-1), found[..., half + 1 :]
            count = count + seen.sum()
            below = below + ((error <= 0) * seen).sum(dim=(0, 1, 2))
            losses = torch.maximum(level * error, (level - 1) * error).mean(dim=-1, keepdim=True)
            loss = loss + (2 * losses * unit * seen).sum()
            inside = inside + ((truth >= low) & (truth <= high)).mul(seen).sum(dim=(0, 1, 2))
            width = width + ((high - low) * unit * seen).sum(dim=(0, 1, 2))
    return QuantileReport(
        levels=levels,
        below=as_shares(below / count),
        nominal=tuple(round(1 - 2 * one, 10) for one in reversed(levels[:half])),
        coverage=as_shares(inside / count),
        width=as_shares(width / count),
        crps=float(loss / count),
    )


def as_shares(values: Tensor) -> tuple[float, ...]:
    """A tensor as plain numbers."""
    return tuple(map(float, values))


def tabulate_quantiles(report: Mapping[str, Any]) -> list[Sequence[Any]]:
    """Rows for people on the quantiles of a run, if it has any."""
    found = report.get("quantiles")
    if found is None:
        return []
    pairs = zip(found["nominal"], found["coverage"], found["width"], strict=True)
    rows: list[Sequence[Any]] = [("CRPS", found["crps"], None)]
    for nominal, coverage, width in pairs:
        rows += [
            (f"share in the {100 * nominal:g} % interval", coverage, None),
            (f"width of the {100 * nominal:g} % interval", width, None),
        ]
    return rows
