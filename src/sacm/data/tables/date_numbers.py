"""Dates written as numbers: 20240131, 202401, 2024, or seconds since 1970 and their fractions."""

from __future__ import annotations

import numpy as np

# Digits of each style that follow those of the year.
CALENDAR: dict[str, int] = {
    "YYYYMM": 2,
    "YYYYMMDD": 4,
    "YYYYMMDDHH": 6,
    "YYYYMMDDHHMM": 8,
    "YYYYMMDDHHMMSS": 10,
}
TICKS: dict[str, int] = {
    "epoch s": 1,
    "epoch ms": 10**3,
    "epoch us": 10**6,
    "epoch ns": 10**9,
}
YEARS = (1000, 2999)
# Smaller numbers are more likely to count something: 1e8 seconds after 1970 is March 1973.
EPOCH_SECONDS = (10**8, 4_102_444_800)  # up to the year 2100
MOSTLY = 0.9


def find_style(values: np.ndarray, *, years: bool = False) -> str | None:
    """Find how numbers write dates.

    Args:
        values: Numbers `[T]`, NaN where one is missing.
        years: Whether numbers of four digits are years.

    Returns:
        The style that at least 90 % of the numbers follow, or None: they only count.
    """
    known = values[~np.isnan(values)] if values.dtype.kind == "f" else values
    if not len(known):
        return None
    whole = bool((known == np.floor(known)).all())
    if years and whole and is_year(known).all():
        return "YYYY"
    if whole:
        for style in CALENDAR:
            if (~np.isnat(decode_calendar(known, style))).mean() >= MOSTLY:
                return style
    low, high = EPOCH_SECONDS
    for style, ticks in TICKS.items():
        if known.min() >= low * ticks and known.max() <= high * ticks:
            return style
    return None


def is_year(values: np.ndarray) -> np.ndarray:
    """Which numbers can be years."""
    found: np.ndarray = (values >= YEARS[0]) & (values <= YEARS[1])
    return found


def decode(values: np.ndarray, style: str) -> np.ndarray:
    """Read numbers `[T]` as datetime64 `[T]`, NaT where one is no date."""
    if style == "YYYY":
        years = np.where(is_year(values), values, 1970).astype(np.int64) - 1970
        stamps = years.astype("datetime64[Y]").astype("datetime64[s]")
        return np.where(is_year(values), stamps, np.datetime64("NaT"))
    if style in CALENDAR:
        return decode_calendar(values, style)
    return decode_epoch(values, TICKS[style])


def decode_calendar(values: np.ndarray, style: str) -> np.ndarray:
    """Numbers whose digits are year, month, day and so on."""
    digits = CALENDAR[style]
    fits = (values >= YEARS[0] * 10**digits) & (values < (YEARS[1] + 1) * 10**digits)
    rest = np.where(fits, values, 0).astype(np.int64)
    fields = []
    for _ in range(digits // 2):
        rest, field = np.divmod(rest, 100)
        fields.append(field)
    one, zero = np.ones_like(rest), np.zeros_like(rest)
    fields = [*fields[::-1], *[one, one, zero, zero, zero][len(fields) :]]
    month, day, hour, minute, second = fields
    fits = fits & (month >= 1) & (month <= 12) & (hour < 24) & (minute < 60) & (second < 60)
    months = np.where(fits, (rest - 1970) * 12 + month - 1, 0).astype("datetime64[M]")
    length = ((months + 1).astype("datetime64[D]") - months.astype("datetime64[D]")).astype(int)
    fits = fits & (day >= 1) & (day <= length)
    seconds = ((day - 1) * 24 + hour) * 3600 + minute * 60 + second
    stamps = months.astype("datetime64[s]") + np.where(fits, seconds, 0).astype("timedelta64[s]")
    return np.where(fits, stamps, np.datetime64("NaT"))


def decode_epoch(values: np.ndarray, ticks: int) -> np.ndarray:
    """Numbers that count `ticks` a second from 1970."""
    if values.dtype.kind == "f":
        missing = np.isnan(values)
        # Floats hold a time of today to about a quarter of a microsecond.
        micros = np.round(np.where(missing, 0, values) * (10**6 / ticks)).astype(np.int64)
        stamps = micros.astype("datetime64[us]")
        return np.where(missing, np.datetime64("NaT"), stamps)
    return (values.astype(np.int64) * (10**9 // ticks)).astype("datetime64[ns]")


def encode(stamps: np.ndarray, style: str) -> np.ndarray | None:
    """Write dates `[T]` as whole numbers of `style`; None if they do not fit into those."""
    if style in TICKS:
        ticks = TICKS[style]
        nanos = stamps.astype("datetime64[ns]").astype(np.int64)
        numbers, left = np.divmod(nanos, 10**9 // ticks)
    else:
        seconds = stamps.astype("datetime64[s]")
        years = seconds.astype("datetime64[Y]")
        months = seconds.astype("datetime64[M]")
        days = seconds.astype("datetime64[D]")
        of_day = (seconds - days).astype(np.int64)
        fields = [
            (months - years).astype(np.int64) + 1,
            (days - months).astype(np.int64) + 1,
            of_day // 3600,
            of_day // 60 % 60,
            of_day % 60,
        ]
        numbers = years.astype(np.int64) + 1970
        for field in fields[: CALENDAR.get(style, 0) // 2]:
            numbers = numbers * 100 + field
        left = (decode(numbers, style) != stamps).astype(np.int64)
    return None if left.any() else numbers
