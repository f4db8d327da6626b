"""Gaps bridged by what their edges say: a slow part that fades, and noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sacm.quality.series.arrays import Bools, Floats, find_stretches

_LAGS = (1, 2, 4, 8, 16)
_GRID = (0.5, 0.7, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995, 0.999, 0.9997)
_EDGE = 4
_FAR = 50
_CHUNK = 20_000


@dataclass(frozen=True)
class Persistence:
    """Correlation `share * fade ** lag` of a channel's remainder with itself.

    Attributes:
        fade: What is left of the slow part after one row.
        share: Share of the variance that is slow; the rest is noise.
    """

    fade: float
    share: float


def fit_persistence(parts: list[Floats], good: list[Bools]) -> Persistence:
    """Fit the correlation at 1, 2, 4, 8 and 16 rows by least squares.

    Args:
        parts: Remainders `[T]` of each piece, around 0.
        good: Values that count, of each piece.
    """
    sizes = np.concatenate([np.abs(part[ok]) for part, ok in zip(parts, good, strict=True)])
    limit = 4 * 1.4826 * float(np.median(sizes)) if len(sizes) else 0.0
    if limit == 0:
        return Persistence(0.9, 0.5)
    clipped = [
        np.where(ok, np.clip(part, -limit, limit), 0.0)
        for part, ok in zip(parts, good, strict=True)
    ]
    moments = np.array([_moment(clipped, good, lag) for lag in (0, *_LAGS)])
    seen = np.clip(moments[1:] / moments[0], 1e-3, 0.9999)
    fades = np.array(_GRID)[:, None] ** np.array(_LAGS)
    shares = np.clip((seen * fades).sum(axis=1) / (fades**2).sum(axis=1), 0.02, 0.999)
    best = int(((seen - shares[:, None] * fades) ** 2).sum(axis=1).argmin())
    return Persistence(_GRID[best], float(shares[best]))


def bridge_gaps(rest: Floats, good: Bools, model: Persistence, *, causal: bool = False) -> Floats:
    """Best linear prediction of every gap from the four nearest good values at either side.

    Args:
        rest: Remainder `[T]` of one piece, around 0.
        good: Values that are known `[T]`.
        model: Correlation of the remainder.
        causal: Use the values before a gap alone.

    Returns:
        The remainder where it is good, the prediction elsewhere `[T]`.
    """
    result = np.where(good, rest, 0.0)
    known = np.flatnonzero(good)
    if not len(known):
        return result
    starts, stops = find_stretches(~good)
    for first in range(0, len(starts), _CHUNK):
        chunk = slice(first, first + _CHUNK)
        _bridge_chunk(result, known, starts[chunk], stops[chunk], model, causal)
    return result


def _bridge_chunk(
    result: Floats,
    known: np.ndarray,
    starts: np.ndarray,
    stops: np.ndarray,
    model: Persistence,
    causal: bool,
) -> None:
    """Fill the gaps `starts` to `stops` of `result` in place."""
    after = np.searchsorted(known, starts)
    steps = np.arange(-_EDGE, 0 if causal else _EDGE)
    place = after[:, None] + steps
    valid = (place >= 0) & (place < len(known))
    rows = known[np.clip(place, 0, len(known) - 1)]
    valid &= (rows > starts[:, None] - _FAR) & (rows < stops[:, None] + _FAR)
    decay = np.log(model.fade)
    between = np.abs(rows[:, :, None] - rows[:, None, :])
    covariance = model.share * np.exp(decay * between)
    covariance *= valid[:, :, None] & valid[:, None, :]
    inner = np.arange(len(steps))
    covariance[:, inner, inner] = 1.0
    weights = np.linalg.solve(covariance, np.where(valid, result[rows], 0.0)[..., None])[..., 0]
    lengths = stops - starts
    gap = np.repeat(np.arange(len(starts)), lengths)
    inside = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    missing = starts[gap] + inside
    towards = model.share * np.exp(decay * np.abs(missing[:, None] - rows[gap]))
    result[missing] = (towards * weights[gap] * valid[gap]).sum(axis=1)


def _moment(parts: list[Floats], good: list[Bools], lag: int) -> float:
    """Mean product of good values that lie `lag` rows apart."""
    total, count = 0.0, 0.0
    for part, ok in zip(parts, good, strict=True):
        size = len(part) - lag
        if size > 0:
            total += float(part[:size] @ part[lag:])
            count += float((ok[:size] & ok[lag:]).sum())
    return total / max(count, 1.0)
