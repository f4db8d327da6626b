"""How many steps a season has: from the time step of the data, or from the data themselves."""

from __future__ import annotations

import re

import numpy as np

from sacm.metrics.intervals import Floats

_DAY = {"s": 86_400.0, "min": 1440.0, "h": 24.0}
_CALENDAR = {"D": 7, "B": 5, "W": 52, "M": 12, "Q": 4, "Y": 1, "A": 1}
_LOOKED_AT = 20_000  # rows; a season shows in fewer
_CLEAR = 0.3  # autocorrelation from which a peak is a season


def season_length(values: np.ndarray, frequency: str | None) -> int:
    """Find the length of a season in steps.

    Args:
        values: Training rows `[T, C]`.
        frequency: The time step as a pandas alias such as "h", "15min" or "MS", if it is known.

    Returns:
        The steps of a day for a step below a day, of a week for days, of a year for weeks, months
        and quarters. Where the time step is unknown or the rows hold fewer than three such
        seasons, the strongest peak of the autocorrelation; 1 where there is none.

    Example:
        >>> season_length(np.zeros((1000, 1)), "15min")
        96
    """
    known = calendar_season(frequency)
    if known is not None and len(values) >= 3 * known:
        return known
    return strongest_period(values)


def calendar_season(frequency: str | None) -> int | None:
    """The season of a time step; None where the alias is unknown or does not divide a day."""
    found = re.fullmatch(r"(\d*)([A-Za-z]+)(-\w+)?", frequency or "")
    if found is None:
        return None
    count, unit = int(found[1] or 1), found[2]
    if unit in _DAY:
        steps = _DAY[unit] / count
        return int(steps) if steps == int(steps) else None
    return _CALENDAR.get(unit[0]) if count == 1 else None


def strongest_period(values: np.ndarray) -> int:
    """The lag of the highest clear peak of the mean autocorrelation `[T, C]`; 1 without one."""
    rows = np.asarray(values[-_LOOKED_AT:], dtype=np.float64)
    longest = len(rows) // 3
    if longest < 3:
        return 1
    correlation = autocorrelation(rows)[: longest + 1]
    inner = correlation[1:-1]
    peaks = np.flatnonzero((inner > correlation[:-2]) & (inner >= correlation[2:])) + 1
    peaks = peaks[(peaks > 1) & (correlation[peaks] > _CLEAR)]
    if not len(peaks):
        return 1
    # Multiples of a season peak nearly as high: the first of the highest is the season.
    near = peaks[correlation[peaks] >= 0.9 * correlation[peaks].max()]
    return int(near[0])


def autocorrelation(rows: Floats) -> Floats:
    """Autocorrelation `[T]` of rows `[T, C]` without their straight trend, mean over channels."""
    time = np.linspace(-1, 1, len(rows))[:, None]
    centred = rows - rows.mean(axis=0)
    centred = centred - time * (time * centred).sum(axis=0) / (time**2).sum()
    size = 1 << (2 * len(rows) - 1).bit_length()
    power = np.abs(np.fft.rfft(centred, size, axis=0)) ** 2
    raw = np.fft.irfft(power, size, axis=0)[: len(rows)]
    varied = raw[0] > 0
    if not varied.any():
        return np.zeros(len(rows))
    found: Floats = (raw[:, varied] / raw[0, varied]).mean(axis=1)
    return found
