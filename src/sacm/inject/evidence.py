"""From what moved to where the windows sit: the arithmetic of the layout probe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from sacm.inject.layout import SiteLayout

_NOISE = 1e-5  # movements this much smaller than the largest are rounding, not dependence


def moved(base: Tensor, other: Tensor) -> Tensor:
    """Which entries of an activation changed, boolean, same shape."""
    if not base.is_floating_point():
        return base != other
    change = (torch.nan_to_num(other.double()) - torch.nan_to_num(base.double())).abs()
    return change > _NOISE * change.max() if change.numel() else change > 0


def find_layout(evidence: Sequence[Tensor]) -> SiteLayout | None:
    """The layout that explains what moved when each of the windows was disturbed in turn.

    `evidence[i]` marks the entries that moved with window i. None when no layout explains it: the
    activation mixes windows. The caller has made sure that something moved.
    """
    windows, shape = len(evidence), evidence[0].shape
    best: tuple[float, SiteLayout] | None = None
    for layout in candidates(shape, windows):
        share = _explained(evidence, layout)
        if share > 0 and (best is None or share > best[0]):
            best = share, layout
    return None if best is None else best[1]


def candidates(shape: Sequence[int], windows: int) -> Iterator[SiteLayout]:
    """Every layout that could hold `windows` windows in this shape; the usual ones first."""
    for dim, size in enumerate(shape):
        if size and size % windows == 0:
            fold = size // windows
            yield SiteLayout(dim, fold)
            if fold > 1:
                yield SiteLayout(dim, fold, batch_major=False)


def _explained(evidence: Sequence[Tensor], layout: SiteLayout) -> float:
    """Share of the owned entries that moved, or 0 if an entry moved that another window owns."""
    owners = layout.owners(len(evidence))
    hits = 0
    for window, entries in enumerate(evidence):
        others = [d for d in range(entries.dim()) if d != layout.dim]
        rows = entries.any(dim=others) if others else entries
        rows = rows.cpu()
        if bool((rows & (owners != window)).any()):
            return 0.0
        hits += int(rows.sum())
    return hits / len(owners)
