"""Training rows as the guard learns from them: checked, without gap codes, cut into windows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from sacm.errors import ArgumentError, DataError, SACMWarning
from sacm.quality.windows.limits import mask_codes

MOST_WINDOWS = 5000
MOST_ENTRIES = 20_000_000
SHORTEST_WINDOW = 5
MANY_WINDOWS_LONG = 8
"""Rows that hold fewer windows side by side are too short to learn a model of windows from."""


class TrainingRows(NamedTuple):
    """What the parts of the guard learn from.

    raw: rows [T, C] in float32, NaN where missing, one NaN row between pieces. z: their z-scores.
    mean, scale: [C]. codes: gap codes [n, C]. long: whether a model of windows can be learnt.
    """

    raw: np.ndarray
    z: np.ndarray
    mean: np.ndarray
    scale: np.ndarray
    codes: np.ndarray
    long: bool


def read_training_rows(
    values: object,
    length: int,
    *,
    mean: object = None,
    scale: object = None,
    pieces: Sequence[range] | None = None,
) -> TrainingRows:
    """Check and prepare training rows; see `fit_window_guard` for the arguments."""
    if not isinstance(length, int) or length < SHORTEST_WINDOW:
        raise ArgumentError(
            f"length must be a number of at least {SHORTEST_WINDOW} steps, got {length!r}."
        )
    rows = join_rows(values, pieces)
    if len(rows) < length:
        raise ArgumentError(
            f"The training rows are {len(rows)}, fewer than the {length} steps of one window."
        )
    rows, codes = mask_codes(rows)
    empty = np.flatnonzero(~np.isfinite(rows).any(0))
    if len(empty):
        raise DataError(
            f"Channel {empty[0]} of the training rows has no value at all; leave it out, or give "
            "rows in which it was observed."
        )
    centre = _statistic("mean", mean, np.asarray(np.nanmean(rows, axis=0, dtype=np.float64)))
    width = _statistic("scale", scale, np.asarray(np.nanstd(rows, axis=0, dtype=np.float64)))
    width = np.where(width > 0, width, 1.0).astype(np.float32)
    long = len(rows) >= MANY_WINDOWS_LONG * length
    if not long:
        warnings.warn(
            f"{len(rows)} training rows are too few to learn what windows of {length} steps look "
            "like; only missing, repeated and wild values will be repaired, by straight lines.",
            SACMWarning,
            stacklevel=3,
        )
    return TrainingRows(rows, (rows - centre) / width, centre, width, codes, long)


def _as_rows(values: object) -> np.ndarray:
    """A float32 array [T, C] with NaN for everything that is not finite."""
    array = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    if array.ndim != 2 or array.dtype.kind not in "fiub" or array.shape[1] == 0:
        raise ArgumentError(
            f"values must be numbers [T, C] (rows, channels), got {array.dtype} of shape "
            f"{list(array.shape)}."
        )
    rows = array.astype(np.float32)
    return np.where(np.isfinite(rows), rows, np.float32(np.nan))


def join_rows(values: object, pieces: Sequence[range] | None) -> np.ndarray:
    """The rows [T, C] of all pieces in float32, with one missing row between two of them."""
    rows = _as_rows(values)
    if pieces is None:
        return rows
    gap = np.full((1, rows.shape[1]), np.nan, dtype=np.float32)
    joined: list[np.ndarray] = []
    for piece in pieces:
        if piece.start < 0 or piece.stop > len(rows) or piece.step != 1:
            raise ArgumentError(f"pieces: {piece} does not lie within the {len(rows)} rows.")
        joined += [gap, rows[piece.start : piece.stop]]
    if not joined:
        raise ArgumentError("pieces must name at least one range of rows.")
    return np.concatenate(joined[1:])


def _statistic(name: str, given: object, learnt: np.ndarray) -> np.ndarray:
    """A number for each channel: the given one, or what the rows say."""
    if given is None:
        return learnt.astype(np.float32)
    array = given.detach().cpu().numpy() if isinstance(given, Tensor) else np.asarray(given)
    array = array.astype(np.float32)
    if array.shape not in ((), learnt.shape) or not np.isfinite(array).all():
        raise ArgumentError(
            f"{name} must hold {len(learnt)} finite numbers, one a channel, got shape "
            f"{list(array.shape)}."
        )
    return np.broadcast_to(array, learnt.shape).copy()


def cut_windows(rows: TrainingRows, length: int) -> tuple[Tensor, Tensor, Tensor]:
    """Training windows [N, L, C], which entries are missing, and the rows they begin at [N].

    Missing entries are filled by straight lines for now. Windows that are mostly missing, and those
    that lie across two pieces, are left out where others remain.
    """
    missing = np.isnan(rows.z)
    filled = np.stack([_fill_column(rows.z[:, c]) for c in range(rows.z.shape[1])], axis=1)
    most = min(MOST_WINDOWS, max(8, MOST_ENTRIES // (length * filled.shape[1])))
    every = max(1, (len(filled) - length) // most)
    starts = torch.arange(0, len(filled) - length + 1, every)
    holes = torch.from_numpy(missing).unfold(0, length, every).transpose(1, 2)
    usable = ~holes.all(2).any(1) & (holes.float().mean((1, 2)) < 0.5)
    keep = usable if int(usable.sum()) >= 8 else torch.ones_like(usable)
    windows = torch.from_numpy(filled).unfold(0, length, every).transpose(1, 2)
    return windows[keep].contiguous(), holes[keep].contiguous(), starts[keep]


def _fill_column(column: np.ndarray) -> np.ndarray:
    """Missing steps of [T] on straight lines between the others."""
    known = np.flatnonzero(~np.isnan(column))
    return np.interp(np.arange(len(column)), known, column[known]).astype(np.float32)
