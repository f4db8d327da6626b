"""Runs of equal values that are longer than a channel shows by nature."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from sacm.quality.windows.neighbours import last_true, next_true
from sacm.quality.windows.parts import Part, on_windows

EQUAL = 1e-6
ROWS_IN_RUNS = 6e-3
"""Share of the training rows that may lie in runs which count as too long."""
SHORTEST = 3
REST_STEPS, REST_RUNS, MOST_RESTS = 4, 3, 16
REST_GRID = 1e-4
NEVER = 1_000_000
FEWEST_VISITS = 3
"""A doubtful value that a window comes back to this often is one of the channel's levels."""
AROUND = 1.5
"""Deviations within which values lie around another."""
SELDOM, OFTEN = 0.1, 0.25
"""A channel has moved to a doubtful value if seldom training values, but often those of the window,
lie around it."""
MOST_AT_REST = 0.5
"""A channel that stays at one value for a larger share of the rows does so by nature."""
PRECISIONS = (torch.float32, torch.float16, torch.bfloat16)
"""Coarser numbers have longer runs by nature, so each precision has its own limits."""


class FlatRuns(Part):
    """Flags steps that repeat their predecessor in a run of at least `least` such steps.

    Buffers: least [3, C] of int64, one row a precision of the input; rest [R, C], values at which a
    channel rests by nature and is never flagged; doubtful [D, C], values at which it stayed in rows
    that were repaired before the guard was fitted (NaN where a channel has fewer); remote, bool
    [D, C], which of those lie where repaired rows seldom are. A run at a doubtful value may be a
    fault, as it was in training, or a level of the channel: it is left alone where the whole window
    stays there, comes back to it several times, or has moved to where it is.
    """

    least: Tensor
    rest: Tensor
    doubtful: Tensor
    remote: Tensor

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
        """Long runs away from rest values, and from doubtful ones that are levels."""
        long = same & (next_true(~same) - last_true(~same) - 1 >= self.least[precision])
        if self.rest.shape[0]:
            long = long & ~_at(z, self.rest, precision).any(-2)
        if self.doubtful.shape[0]:
            long = long & ~self._at_level(z, precision)
        return long

    def _at_level(self, z: Tensor, precision: int) -> Tensor:
        """Which entries [B, L, C] lie at a doubtful value that is a level of the channel."""
        there = _at(z, self.doubtful, precision)
        arrivals = (there[:, 1:] & ~there[:, :-1]).sum(1) + there[:, 0]
        around = (z.unsqueeze(-2) - self.doubtful).abs() <= AROUND
        others = (~there).sum(1)
        moved = self.remote & ((around & ~there).sum(1) >= OFTEN * others)
        level = (arrivals >= FEWEST_VISITS) | there.all(1) | moved
        return (there & level.unsqueeze(1)).any(-2)


def _at(z: Tensor, values: Tensor, precision: int) -> Tensor:
    """Which z-scores [B, L, C] lie at each of the values [R, C]: bool [B, L, R, C]."""
    near = 1.1 * REST_GRID + torch.finfo(PRECISIONS[precision]).eps * values.abs()
    return (z.unsqueeze(-2) - values).abs() <= near


def precision_of(dtype: torch.dtype) -> int:
    """Position of an input's precision in `PRECISIONS`; float64 counts as float32."""
    return PRECISIONS.index(dtype) if dtype in PRECISIONS else 0


def learn_flat_runs(
    raw: np.ndarray,
    mean: np.ndarray,
    scale: np.ndarray,
    *,
    longest: int,
    sensitivity: float,
    before: np.ndarray | None = None,
) -> FlatRuns:
    """Count the runs of training rows [T, C], NaN where missing, in the units of the windows.

    A run counts as many rows as the limit has steps, however long it is: one long outage says no
    more about the channel's nature than a short one. A channel that would need more than `longest`
    equal steps rests by nature and is never flagged. `before` are the same rows before they were
    repaired, if they were.
    """
    exact = torch.from_numpy(raw.astype(np.float32))
    limits = []
    for dtype in PRECISIONS:
        z = (exact.to(dtype).to(torch.float32).numpy() - mean) / scale
        limits.append([_least(z[:, c], longest, sensitivity) for c in range(z.shape[1])])
    z = (exact.numpy() - mean) / scale
    rests = [_rest_values(column) for column in z.T]
    doubts = rests
    if before is not None:
        doubts = [_rest_values(column) for column in ((before - mean) / scale).T]
    doubts = [
        own[~np.isclose(own[:, None], rest, rtol=0, atol=REST_GRID).any(1)]
        for own, rest in zip(doubts, rests, strict=True)
    ]
    doubtful = _table(doubts)
    return FlatRuns(
        least=torch.tensor(limits),
        rest=_table(rests),
        doubtful=doubtful,
        remote=torch.from_numpy(_share_around(z, doubtful.numpy()) < SELDOM),
    )


def _share_around(z: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Share of the rows z [T, C] that lie around each of the values [D, C]."""
    near = [np.mean(np.abs(z - own) <= AROUND, axis=0) for own in values]
    return np.stack(near) if near else np.zeros(values.shape)


def _table(values: list[np.ndarray]) -> Tensor:
    """Some numbers for each of C channels as [R, C], NaN where there are fewer than R."""
    table = np.full((max(map(len, values)), len(values)), np.nan, dtype=np.float32)
    for c, own in enumerate(values):
        table[: len(own), c] = own
    return torch.from_numpy(table)


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
    allowed = ROWS_IN_RUNS * sensitivity * len(column)
    for least in range(SHORTEST, longest + 1):
        if least * (steps >= least).sum() <= allowed:
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
