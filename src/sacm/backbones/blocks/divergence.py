"""How far two attention maps of the same steps are from each other."""

from __future__ import annotations

from torch import Tensor

from sacm.backbones.blocks.precision import full_precision, widen

FLOOR = 1e-4


def symmetric_distance(first: Tensor, second: Tensor) -> Tensor:
    """D(a, b) + D(b, a) of maps `[B, h, L, L]`, row by row: `[B, L]`.

    D(a, b)_i = mean_h sum_j a_ij (ln(a_ij + 1e-4) - ln(b_ij + 1e-4)). Detach one argument to move
    only the other.
    """
    with full_precision(first):
        first, second = widen(first), widen(second)
        ratio = (first + FLOOR).log() - (second + FLOOR).log()  # [B, h, L, L]
        return ((first - second) * ratio).sum(dim=-1).mean(dim=1)
