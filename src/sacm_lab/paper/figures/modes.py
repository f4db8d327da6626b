"""Hard retention: a series rebuilt from its dominant Fourier coefficients alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from sacm.core.config import Detrend
from sacm.core.spectrum import detrend
from sacm.errors import ArgumentError


@dataclass(frozen=True)
class Modes:
    """The spectrum [K] of a detrended series [T], what is kept of it, and what that rebuilds."""

    trend: np.ndarray  # [T]
    amplitude: np.ndarray  # [K]
    kept: np.ndarray  # [K], bool
    rebuilt: np.ndarray  # [T], with the trend restored

    @property
    def threshold(self) -> float:
        """The smallest amplitude that is kept, the mean's aside."""
        return float(self.amplitude[1:][self.kept[1:]].min())


def trend_of(values: np.ndarray, how: Detrend) -> np.ndarray:
    """The scorer's own line through a series [T]."""
    series = torch.from_numpy(np.asarray(values, dtype=np.float64))
    return (series - detrend(series, how)).numpy()


def dominant(values: np.ndarray, share: float, *, detrend: Detrend = "none") -> Modes:
    """Keep the largest `share` of the coefficients of a series [T], at least one.

    The mean is kept besides and not counted: it holds no oscillation, and counting it would leave
    a series that is not detrended one coefficient fewer than one that is.
    """
    if len(values) < 3 or not 0 < share <= 1:
        raise ArgumentError(
            f"three steps and a share in (0, 1] are needed, got {len(values)} and {share}."
        )
    trend = trend_of(values, detrend)
    spectrum = np.fft.rfft(values - trend)  # [K]
    amplitude = np.abs(spectrum)
    count = max(1, round(share * (len(spectrum) - 1)))
    kept = np.zeros(len(spectrum), dtype=bool)
    kept[0] = True
    kept[1 + np.argsort(-amplitude[1:], kind="stable")[:count]] = True
    rebuilt = np.fft.irfft(np.where(kept, spectrum, 0), n=len(values)) + trend
    return Modes(trend, amplitude, kept, rebuilt)


def correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Pearson's r of two series [T]."""
    return float(np.corrcoef(one, other)[0, 1])
