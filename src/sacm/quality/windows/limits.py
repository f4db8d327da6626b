"""Values that a channel cannot have: gap codes, and numbers far outside of what was seen."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from sacm.quality.windows.parts import Part

MARGIN = 1.0
"""How far beyond the training range a value may lie, in widths of that range."""
CODE_REPEATS = 2
MOST_CODES = 4
FEWEST_VALUES = 10
"""A channel of fewer different values is a state or a count, whose extremes are real."""
WILD = 3.0
"""A single extreme is wild if it lies this many times the spread of all others from the next."""


class Limits(Part):
    """Tells gap codes and impossible values.

    Buffers: low [C] and high [C], bounds of z-scores; codes [n, C], gap codes in the units of the
    windows (NaN where a channel has fewer).
    """

    low: Tensor
    high: Tensor
    codes: Tensor

    def outside(self, z: Tensor) -> Tensor:
        """Which z-scores [B, L, C] no healthy channel has shown by far; false for NaN."""
        return (z < self.low) | (z > self.high)

    def is_code(self, x: Tensor, grain: float) -> Tensor:
        """Which values [B, L, C], in the units of the windows, are gap codes.

        Args:
            x: windows in float32.
            grain: relative precision of the numbers that they came in.
        """
        if self.codes.shape[0] == 0:
            return torch.zeros_like(x, dtype=torch.bool)
        near = max(grain, 1e-5) * self.codes.abs()
        return ((x.unsqueeze(-2) - self.codes).abs() <= near).any(-2)


def mask_codes(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows [T, C] with gap codes and wild extremes as NaN, and the codes [n, C].

    An extreme that repeats is a gap code if it lies farther from the next value than all other
    values spread; a single one is masked if it lies `WILD` times as far.
    """
    rows = rows.copy()
    found = [_mask_extremes(rows[:, c]) for c in range(rows.shape[1])]
    codes = np.full((max(map(len, found)), rows.shape[1]), np.nan, dtype=np.float32)
    for c, values in enumerate(found):
        codes[: len(values), c] = values
    return rows, codes


def _mask_extremes(column: np.ndarray) -> list[float]:
    """Mask extremes of [T] in place; the codes among them."""
    codes: list[float] = []
    for _ in range(MOST_CODES):
        values, counts = np.unique(column[np.isfinite(column)], return_counts=True)
        if len(values) < FEWEST_VALUES:
            break
        far_low = (values[1] - values[0]) / (values[-1] - values[1])
        far_high = (values[-1] - values[-2]) / (values[-2] - values[0])
        place, far = (0, far_low) if far_low > far_high else (-1, far_high)
        repeats = counts[place] >= CODE_REPEATS
        if far <= (1.0 if repeats else WILD):
            break
        if repeats:
            codes.append(float(values[place]))
        column[column == values[place]] = np.nan
    return codes


def learn_limits(z: np.ndarray, codes: np.ndarray, *, sensitivity: float) -> Limits:
    """Bounds from z-scores [T, C] of training rows, NaN where missing."""
    low, high = np.nanmin(z, axis=0), np.nanmax(z, axis=0)
    margin = np.maximum(high - low, 1.0) * MARGIN / sensitivity
    return Limits(
        low=torch.from_numpy((low - margin).astype(np.float32)),
        high=torch.from_numpy((high + margin).astype(np.float32)),
        codes=torch.from_numpy(codes),
    )
