"""Layouts: which rows of an activation belong to which window, and the errors about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from sacm.core.dropout import Keep, drop_entries
from sacm.errors import ArgumentError, LayoutError


@dataclass(frozen=True)
class SiteLayout:
    """Where the batch of `B` windows sits in an activation.

    Args:
        dim: Dimension that holds the windows; its size is ``B * fold``.
        fold: Entries of this dimension per window: 1 for `[B, …]`, `C` for `[B*C, …]`.
        batch_major: True: entry ``b * fold + f`` belongs to window ``b`` (`[B*C, …]`). False: entry
            ``f * B + b`` does (`[C*B, …]`).

    Raises:
        ArgumentError: `dim` is negative or `fold` below 1.

    Example:
        >>> layout = SiteLayout(dim=0, fold=3)
        >>> print(layout, layout.owners(batch=2).tolist())
        dim 0 = B*3 [0, 0, 0, 1, 1, 1]
    """

    dim: int
    fold: int = 1
    batch_major: bool = True

    def __post_init__(self) -> None:
        if self.fold < 1 or self.dim < 0:
            raise ArgumentError(
                f"a site layout needs dim >= 0 and fold >= 1, got dim={self.dim}, fold={self.fold}."
            )

    def __str__(self) -> str:
        if self.fold == 1:
            return f"dim {self.dim} = B"
        order = f"B*{self.fold}" if self.batch_major else f"{self.fold}*B"
        return f"dim {self.dim} = {order}"

    def fits(self, shape: Sequence[int], batch: int) -> bool:
        """Return whether an activation of this shape can hold `batch` windows in this way."""
        return self.dim < len(shape) and shape[self.dim] == batch * self.fold

    def owners(self, batch: int) -> Tensor:
        """Return the window that owns each entry of dimension `dim`, `[batch * fold]`."""
        entries = torch.arange(batch * self.fold)
        return entries // self.fold if self.batch_major else entries % batch

    def unfold(self, shape: Sequence[int], batch: int) -> tuple[list[int], int]:
        """Return the shape with `dim` split into batch and fold, and the position of the batch."""
        if self.fold == 1:
            return [*shape], self.dim
        pair = (batch, self.fold) if self.batch_major else (self.fold, batch)
        split = [*shape[: self.dim], *pair, *shape[self.dim + 1 :]]
        return split, self.dim if self.batch_major else self.dim + 1

    def drop(self, h: Tensor, keep: Keep, mask_shape: Sequence[int] | None = None) -> Tensor:
        """Drop `h` `[…, B*fold, …]` at the keep probabilities of its windows.

        `mask_shape` broadcasts over `h`: entries that share a mask entry drop together.
        """
        batch = keep.probability.shape[0]
        split, position = self.unfold(h.shape, batch)
        if mask_shape is not None:
            mask_shape = self._unfold_mask(mask_shape, h.shape, batch)
        keep = keep.along(position, len(split))
        if self.fold == 1:  # the usual case, spared two views that autograd would follow
            return drop_entries(h, keep, mask_shape)
        return drop_entries(h.view(split), keep, mask_shape).reshape(h.shape)

    def _unfold_mask(self, mask: Sequence[int], shape: Sequence[int], batch: int) -> list[int]:
        """Split a mask shape as `unfold` splits the activation."""
        split, position = self.unfold(mask, batch)
        if mask[self.dim] != shape[self.dim]:  # a feature map that spans windows
            split = [*mask[: self.dim], *[1] * (len(split) - len(mask)), *mask[self.dim :]]
            split[position] = batch  # drops window by window
        return split


def layout_error(model: str, problems: Mapping[str, str]) -> LayoutError:
    """Return one error for all unresolved sites: a sentence by site name, and how to skip them."""
    if len(problems) == 1:
        return LayoutError(
            f"{next(iter(problems.values()))}, or leave this site as ordinary dropout with "
            f"skip={list(problems)}."
        )
    lines = "\n".join(f"  {sentence}" for sentence in problems.values())
    return LayoutError(
        f"{len(problems)} dropout sites of {model} have no known layout:\n{lines}\n"
        f"To leave them all as ordinary dropout: skip={list(problems)}"
    )
