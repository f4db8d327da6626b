"""Wrong labels, as in the study of noisy labels of time series (CTW)."""

from __future__ import annotations

import numpy as np


def flip_to_any(
    codes: np.ndarray, classes: int, ratio: float, random: np.random.Generator
) -> np.ndarray:
    """Each label becomes, with probability `ratio`, one of the other classes, all alike."""
    hit = random.random(len(codes)) < ratio
    step = random.integers(1, max(2, classes), len(codes))
    return np.asarray(np.where(hit, (codes + step) % classes, codes))


def flip_to_next(
    codes: np.ndarray, classes: int, ratio: float, random: np.random.Generator
) -> np.ndarray:
    """Each label becomes, with probability `ratio`, the class that follows it."""
    hit = random.random(len(codes)) < ratio
    return np.asarray(np.where(hit, (codes + 1) % classes, codes))
