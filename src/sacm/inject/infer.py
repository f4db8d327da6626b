"""Infer layouts from movements: which rows of an activation moved when windows were disturbed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import torch
from torch import Tensor

from sacm.inject.sites import SiteLayout

_NOISE = 1e-5  # movements this much smaller than the largest are rounding, not dependence
FAINT = 0.1  # a row still belongs to a window if no other moves it by more than this share
_COMMON = 0.5  # the same for windows that move all others alike, as a mean over the batch does
_ALIKE = 0.2  # of the largest movement
ANY = -1  # in place of a dimension


def measure_rows(base: Tensor, other: Tensor, windows: int) -> dict[int, Tensor]:
    """Return how far each row moved, `[rows]`, by dimension that can hold the windows.

    Under the key `ANY` is the largest movement of all, `[1]`.
    """
    if not base.numel():
        return {ANY: torch.zeros(1)}
    change = movement(base, other)
    return {ANY: change.amax().view(1).cpu().double()} | {
        dim: change.movedim(dim, 0).reshape(size, -1).amax(dim=1).cpu().double()
        for dim, size in enumerate(change.shape)
        if size % windows == 0
    }


def movement(base: Tensor, other: Tensor) -> Tensor:
    """Return how far each entry of an activation moved, same shape; rounding counts as 0."""
    if not base.is_floating_point() and not base.is_complex():
        return (base != other).float()
    change = (torch.nan_to_num(other) - torch.nan_to_num(base)).abs()
    return change.masked_fill(change <= _NOISE * change.max(), 0.0)


def list_candidates(shape: Sequence[int], windows: int) -> Iterator[SiteLayout]:
    """Return every layout that could hold `windows` windows in this shape; the usual ones first."""
    for dim, size in enumerate(shape):
        if size and size % windows == 0:
            fold = size // windows
            yield SiteLayout(dim, fold)
            if fold > 1:
                yield SiteLayout(dim, fold, batch_major=False)


def find_layout(
    rows: Mapping[int, Tensor],
    candidates: Iterable[SiteLayout],
    passes: Tensor,
    cross_talk: float = 0.0,
) -> SiteLayout | None:
    """Return the layout that explains which rows moved; None if the activation mixes windows.

    `rows` are movements `[passes, rows]` by dimension, `passes` `[windows]` the pass in which each
    window was disturbed or -1. Others may move a row by the share `cross_talk` of its owner's.
    """
    best, highest = None, 0.0
    for layout in candidates:
        owners = passes[layout.owners(len(passes))]
        share = _share_explained(rows[layout.dim], owners, cross_talk)
        if share > highest:
            best, highest = layout, share
    return best


def _share_explained(moved: Tensor, owners: Tensor, cross_talk: float) -> float:
    """Return the share of rows that their owner moved, or 0 if another window moves one too far.

    A scale that is computed from the whole batch lets every window move all rows a little. Such
    cross-talk is told from a window's own rows: it is small beside what the same window does to
    these, or alike in all rows. Where a batch is sorted, shuffled or mixed, it is not. `owners` is
    the pass in which the owner of each row was disturbed, `[rows]`, or -1.
    """
    is_own = owners.unsqueeze(0) == torch.arange(len(moved)).unsqueeze(1)  # [passes, rows]
    own, foreign = moved.where(is_own, 0.0), moved.where(~is_own, 0.0)
    limit = torch.zeros(())
    if cross_talk:
        middle = moved.where(~is_own, torch.nan).nanmedian(dim=1, keepdim=True).values
        common = middle > _ALIKE * foreign.amax(dim=1, keepdim=True)
        largest = torch.maximum(own.amax(dim=0, keepdim=True), own.amax(dim=1, keepdim=True))
        limit = torch.where(common, _COMMON, cross_talk) * largest
    if bool((foreign > limit).any()):
        return 0.0
    return float((own > 0).any(dim=0)[owners >= 0].double().mean())
