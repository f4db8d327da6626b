"""From what moved to where the windows sit: the arithmetic of the layout probe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from sacm.inject.layout import SiteLayout

_NOISE = 1e-5  # movements this much smaller than the largest are rounding, not dependence
FAINT = 0.1  # a row still belongs to a window if no other moves it by more than this share


def movement(base: Tensor, other: Tensor) -> Tensor:
    """How far each entry of an activation moved, same shape; rounding counts as 0."""
    base, other = base.cpu(), other.cpu()  # not every accelerator has float64
    if not base.is_floating_point() and not base.is_complex():
        return (base != other).double()
    change = (torch.nan_to_num(other) - torch.nan_to_num(base)).abs().double()
    return change.where(change > _NOISE * change.max(), 0.0) if change.numel() else change


def measure_rows(change: Tensor, dim: int) -> Tensor:
    """The largest movement in each row of one dimension, `[rows]`."""
    others = [d for d in range(change.dim()) if d != dim]
    return change.amax(dim=others) if others else change


def find_layout(changes: Sequence[Tensor], *, cross_talk: float = 0.0) -> SiteLayout | None:
    """The layout that explains what moved when each of the windows was disturbed in turn.

    `changes[i]` is the movement under window i. None when no layout explains it: the activation
    mixes windows, by more than the share `cross_talk`. The caller has made sure that something
    moved.
    """
    best: tuple[float, SiteLayout] | None = None
    for layout in list_candidates(changes[0].shape, len(changes)):
        share = _explained(changes, layout, cross_talk)
        if share > 0 and (best is None or share > best[0]):
            best = share, layout
    return None if best is None else best[1]


def list_candidates(shape: Sequence[int], windows: int) -> Iterator[SiteLayout]:
    """Every layout that could hold `windows` windows in this shape; the usual ones first."""
    for dim, size in enumerate(shape):
        if size and size % windows == 0:
            fold = size // windows
            yield SiteLayout(dim, fold)
            if fold > 1:
                yield SiteLayout(dim, fold, batch_major=False)


def _explained(changes: Sequence[Tensor], layout: SiteLayout, cross_talk: float) -> float:
    """Share of the rows that their owner moved, or 0 if another window moves one too far."""
    moved = torch.stack([measure_rows(change, layout.dim) for change in changes])  # [windows, rows]
    owners = layout.owners(len(changes)).unsqueeze(0)
    by_owner = moved.gather(0, owners)  # [1, rows]
    by_others = moved.scatter(0, owners, 0.0)
    if bool((by_others > cross_talk * by_owner).any()):
        return 0.0
    return float((by_owner > 0).double().mean())
