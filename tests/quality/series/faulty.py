"""A seasonal series of three related channels, with faults at known rows."""

from __future__ import annotations

import numpy as np


def healthy(rows: int = 2400, seed: int = 0) -> np.ndarray:
    """Values `[rows, 3]`: daily season, noise, the third channel by itself."""
    generator = np.random.default_rng(seed)
    day = np.sin(2 * np.pi * np.arange(rows) / 24)
    slow = np.zeros(rows)
    for row in range(1, rows):
        slow[row] = 0.97 * slow[row - 1] + 0.05 * generator.standard_normal()
    noise = 0.08 * generator.standard_normal((rows, 3))
    return np.stack([day + slow, 2 * day - slow + 5, 0.5 * day - 1], axis=1) + noise


def break_channel(values: np.ndarray, kind: str) -> tuple[np.ndarray, slice]:
    """Channel 0 with one fault of a kind, and the rows it is at."""
    broken = values.copy()
    rows = slice(1203, 1251)
    stretch = broken[rows, 0]
    if kind in ("spike", "range"):
        rows = slice(1203, 1204)
        broken[rows, 0] += 5.0 if kind == "spike" else 60.0
    elif kind == "missing":
        stretch[:] = np.nan
    elif kind == "code":
        stretch[:] = -999.0
    elif kind == "stuck":
        stretch[:] = stretch[0]
    elif kind == "burst":
        stretch += 2 * np.random.default_rng(1).standard_normal(len(stretch))
    elif kind == "shift":
        stretch += 3.0
    return broken, rows
