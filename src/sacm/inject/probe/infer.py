"""Infer layouts from movements: which rows of an activation moved when windows were disturbed.

Windows are disturbed one by one, one in each pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from sacm.inject.layout import SiteLayout

_NOISE = 1e-5  # movements this much smaller than the largest are rounding, not dependence
FAINT = 0.1  # a row still belongs to a window if no other moves it by more than this share
_COMMON = 0.5  # the same for windows that move all others alike, as a mean over the batch does
_ALIKE = 0.2  # of the largest movement


def movement(base: Tensor, other: Tensor) -> Tensor:
    """Return how far each entry of an activation moved, same shape; rounding counts as 0."""
    base, other = base.cpu(), other.cpu()  # not every accelerator has float64
    if not base.is_floating_point() and not base.is_complex():
        return (base != other).double()
    change = (torch.nan_to_num(other) - torch.nan_to_num(base)).abs().double()
    return change.where(change > _NOISE * change.max(), 0.0) if change.numel() else change


def measure_rows(change: Tensor, dim: int) -> Tensor:
    """Return the largest movement in each row of one dimension, `[rows]`."""
    others = [d for d in range(change.dim()) if d != dim]
    return change.amax(dim=others) if others else change


def find_layout(changes: Sequence[Tensor], *, cross_talk: float = 0.0) -> SiteLayout | None:
    """Return the layout that explains what moved when each of the windows was disturbed in turn.

    Args:
        changes: Movement of the activation under window i, one tensor for each window; some entry
            has moved.
        cross_talk: Share of its owner's movement by which other windows may move a row.

    Returns:
        The layout, or None if the activation mixes windows.
    """
    windows = len(changes)
    best: tuple[float, SiteLayout] | None = None
    for layout in list_candidates(changes[0].shape, windows):
        moved = torch.stack([measure_rows(change, layout.dim) for change in changes])
        share = share_explained(moved, layout.owners(windows), cross_talk)
        if share > 0 and (best is None or share > best[0]):
            best = share, layout
    return None if best is None else best[1]


def list_candidates(shape: Sequence[int], windows: int) -> Iterator[SiteLayout]:
    """Return every layout that could hold `windows` windows in this shape; the usual ones first."""
    for dim, size in enumerate(shape):
        if size and size % windows == 0:
            fold = size // windows
            yield SiteLayout(dim, fold)
            if fold > 1:
                yield SiteLayout(dim, fold, batch_major=False)


def share_explained(moved: Tensor, owners: Tensor, cross_talk: float) -> float:
    """Return the share of rows that their owner moved, or 0 if another moves one too far.

    Args:
        moved: Movement of each row in each pass, `[passes, rows]`.
        owners: The pass in which the owner of each row was disturbed, `[rows]`.
        cross_talk: Share of the owner's movement by which other passes may move a row.
    """
    if bool(find_foreign(moved, owners, cross_talk).any()):
        return 0.0
    by_owner = moved.gather(0, owners.unsqueeze(0))
    return float((by_owner > 0).double().mean())


def find_foreign(moved: Tensor, owners: Tensor, cross_talk: float) -> Tensor:
    """Return the rows that a pass moves too far in which their owner was not disturbed, `[rows]`.

    A scale that is computed from the whole batch lets every window move all rows a little, and a
    window without values of its own may depend on nothing else. Such a trace is told from a
    window's own rows: it is small beside what the same window does to these, and it is alike in
    most rows or comes from most windows. Where a batch is sorted, shuffled or mixed, it is not.

    Args:
        moved: Movement of each row in each pass, `[passes, rows]`.
        owners: The pass in which the owner of each row was disturbed, `[rows]`.
        cross_talk: Share by which rows may move in the passes of others.
    """
    by_pass = owners.unsqueeze(0) == torch.arange(len(moved)).unsqueeze(1)  # [passes, rows]
    foreign = moved.where(~by_pass, 0.0)
    by_owner = moved.where(by_pass, 0.0).amax(dim=0, keepdim=True)
    if not cross_talk:
        return (foreign > 0).any(dim=0)
    reach = moved.where(by_pass, 0.0).amax(dim=1, keepdim=True)  # of each pass in its own rows
    middle = moved.where(~by_pass, torch.nan).nanmedian(dim=1, keepdim=True).values
    common = middle > _ALIKE * foreign.amax(dim=1, keepdim=True)
    share = torch.where(common | _moved_by_most(moved, foreign, owners), _COMMON, cross_talk)
    return (foreign > share * torch.maximum(by_owner, reach)).any(dim=0)


def _moved_by_most(moved: Tensor, foreign: Tensor, owners: Tensor) -> Tensor:
    """Return the rows that more than half of the others move, as a mean over them is, `[rows]`.

    It may be the only trace in a row whose window has no values, beside rows that do not show it.
    Sorting, shuffling and mixing lead one or two other windows into a row. Passes of windows
    without values move nothing and do not count.
    """
    effective = (moved > 0).any(dim=1).long()  # [passes]
    others = effective.sum() - effective[owners]
    return 2 * (foreign > 0).sum(dim=0) > others


def describe_mixing(changes: Sequence[Tensor]) -> str:
    """Say why no layout explains the movements of an activation under each of the windows."""
    windows, shape = len(changes), changes[0].shape
    if not any(list_candidates(shape, windows)):
        return (
            f"has no dimension that holds the {windows} probed windows, as when forward pads the "
            "batch or takes it in parts"
        )
    if not all(bool(change.any()) for change in changes):
        return (
            f"depends on some of the {windows} probed windows and not on others, as when forward "
            "takes the batch in parts or leaves windows out"
        )
    return f"mixes the rows of the {windows} probed windows"
