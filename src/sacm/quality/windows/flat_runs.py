"""Runs of equal values that are longer than a channel shows by nature."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from sacm.quality.windows.neighbours import last_true, next_true
from sacm.quality.windows.parts import Part, on_windows

EQUAL = 1e-6
RUNS_PER_ROW = 2e-3
SHORTEST = 3
REST_STEPS, REST_RUNS, MOST_RESTS = 4, 3, 16
REST_GRID = 1e-4
NEVER = 1_000_000
MOST_AT_REST = 0.5
"""A channel that stays at one value for a larger share of the rows does so by nature."""
PRECISIONS = (torch.float32, torch.float16, torch.bfloat16)
"""Coarser numbers have longer runs by nature, so each precision has its own limits."""


class FlatRuns(Part):
    """Flags steps that repeat their predecessor in a run of at least `least` such steps.

    Buffers: least [3, C] of int64, one row a precision of the input; rest [R, C], values at which a
    channel rests by nature and is never flagged (NaN where there are fewer).
    """

    least: Tensor
    rest: Tensor

    def forward(self, z: Tensor, missing: Tensor, precision: int = 0) -> Tensor:
        """Flags [B, L, C] for z-scores and missing values of the same shape.

        Args:
            z: z-scores.
            missing: entries without a value; no run passes them.
            precision: position in `PRECISIONS` of the numbers that the windows came in.
        """
        same = ((z[:, 1:] - z[:, :-1]).abs() <= EQUAL) & ~missing[:, 1:] & ~missing[:, :-1]
        same = torch.cat([torch.zeros_like(same[:, :1]), same], 1)
        # Single precision adds faster than whole numbers and is exact for counts of steps.
        enough = (same.float().sum(1) >= self.least[precision]).any(1)
        none = torch.zeros_like(same)
        return on_windows(enough, lambda _, s, v: self._flag(s, v, precision), none, same, z)

    def _flag(self, same: Tensor, z: Tensor, precision: int) -> Tensor:
        """Long runs away from rest values."""
        long = same & (next_true(~same) - last_true(~same) - 1 >= self.least[precision])
        if self.rest.shape[0] == 0:
            return long
        grain = torch.finfo(PRECISIONS[precision]).eps
        near = 1.1 * REST_GRID + grain * self.rest.abs()
        resting = ((z.unsqueeze(-2) - self.rest).abs() <= near).any(-2)
        return long & ~resting


def precision_of(dtype: torch.dtype) -> int:
    """Position of an input's precision in `PRECISIONS`; float64 counts as float32."""
    return PRECISIONS.index(dtype) if dtype in PRECISIONS else 0


def learn_flat_runs(
    raw: np.ndarray, mean: np.ndarray, scale: np.ndarray, *, longest: int, sensitivity: float
) -> FlatRuns:
    """Count the runs of training rows [T, C], NaN where missing, in the units of the windows.

    Runs are counted, not rows: one long outage is one run. A channel that would need more than
    `longest` equal steps rests by nature and is never flagged.
    """
    exact = torch.from_numpy(raw.astype(np.float32))
    limits = []
    for dtype in PRECISIONS:
        z = (exact.to(dtype).to(torch.float32).numpy() - mean) / scale
        limits.append([_least(z[:, c], longest, sensitivity) for c in range(z.shape[1])])
    z = (exact.numpy() - mean) / scale
    rests = [_rest_values(z[:, c]) for c in range(z.shape[1])]
    table = np.full((max(map(len, rests)), z.shape[1]), np.nan, dtype=np.float32)
    for c, values in enumerate(rests):
        table[: len(values), c] = values
    return FlatRuns(least=torch.tensor(limits), rest=torch.from_numpy(table))


def mark_runs(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Start of every run of equal values in [T], and how many steps repeat the first."""
    same = np.abs(np.diff(column)) <= EQUAL  # false beside NaN
    edges = np.flatnonzero(np.diff(np.concatenate([[0], same.astype(np.int8), [0]])))
    return edges[::2], edges[1::2] - edges[::2]


def _least(column: np.ndarray, longest: int, sensitivity: float) -> int:
    """The shortest run that training rows show seldom enough."""
    _, steps = mark_runs(column)
    if (steps >= SHORTEST).any() and steps.max() > MOST_AT_REST * len(column):
        return NEVER
    allowed = RUNS_PER_ROW * sensitivity * len(column)
    for least in range(SHORTEST, longest + 1):
        if (steps >= least).sum() <= allowed:
            return least
    return NEVER


def _rest_values(column: np.ndarray) -> np.ndarray:
    """Values at which the channel stayed several times, most frequent first."""
    starts, steps = mark_runs(column)
    values = np.round(column[starts[steps >= REST_STEPS]] / REST_GRID)
    found, counts = np.unique(values, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    chosen = [found[i] * REST_GRID for i in order if counts[i] >= REST_RUNS]
    return np.asarray(chosen[:MOST_RESTS], dtype=np.float32)
