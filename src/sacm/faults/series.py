"""Faults of whole series `[T, C]`, for training on contaminated rows and for testing detectors.

Each function breaks about a share `ratio` of the entries of every channel by itself and returns the
broken values, which entries it broke, and the kind of each as a position in `SERIES_KINDS`
(0 is untouched). Sizes are in deviations of the channel. Segments have 24 to 95 steps, fewer in
short series. The last four are the operators of RobustTSF.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sacm.errors import ArgumentError

CODE_VALUE = -9999.0
TRIES = 5000


class BrokenSeries(NamedTuple):
    """Broken values [T, C], which entries are broken (bool), and their kinds (uint8)."""

    values: np.ndarray
    broken: np.ndarray
    kinds: np.ndarray


SeriesFault = Callable[[np.ndarray, float, np.random.Generator], tuple[np.ndarray, np.ndarray]]


def break_series(values: np.ndarray, kind: str, ratio: float, *, seed: int = 0) -> BrokenSeries:
    """A series with faults.

    Args:
        values: numbers [T, C].
        kind: a name in `SERIES_FAULTS`, or in `MIXTURES`, whose kinds share the ratio.
        ratio: share of the entries to break, between 0 and 1.
        seed: of places and sizes.

    Returns:
        Values in the precision of the input (NaN where a value was removed), mask and kinds.

    Example:
        >>> rows = np.random.default_rng(0).normal(size=(500, 2))
        >>> values, broken, kinds = break_series(rows, "mix", 0.3, seed=1)
    """
    values = np.asarray(values)
    if values.ndim != 2 or values.dtype.kind != "f" or len(values) < 2:
        raise ArgumentError(
            f"A series must be floating-point numbers [T, C] with T of 2 or more, got "
            f"{values.dtype} of shape {list(values.shape)}."
        )
    if not 0 <= ratio <= 1:
        raise ArgumentError(f"ratio must lie between 0 and 1, got {ratio}.")
    parts = MIXTURES.get(kind, (kind,))
    if any(part not in SERIES_FAULTS for part in parts):
        known = ", ".join([*SERIES_FAULTS, *MIXTURES])
        raise ArgumentError(f"There is no fault {kind!r}: use {known}.")
    random = np.random.default_rng(seed)
    spread = np.nanstd(values, axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    centre = np.nanmean(values, axis=0)
    kinds = np.zeros(values.shape, dtype=np.uint8)
    healthy = (values - centre) / spread
    z = healthy.copy()
    for c in range(values.shape[1]):
        for part in parts:
            changed, at = SERIES_FAULTS[part](healthy[:, c], ratio / len(parts), random)
            at &= kinds[:, c] == 0  # the first fault of an entry stays
            z[at, c] = changed[at]
            kinds[at, c] = SERIES_KINDS.index(part)
    result = _in_units(z, kinds, centre, spread).astype(values.dtype)
    return BrokenSeries(np.where(kinds > 0, result, values), kinds > 0, kinds)


def _in_units(
    z: np.ndarray, kinds: np.ndarray, centre: np.ndarray, spread: np.ndarray
) -> np.ndarray:
    """Back from deviations; zeros and codes are numbers of the sensor itself."""
    values = z * spread + centre
    values = np.where(kinds == SERIES_KINDS.index("zero"), 0.0, values)
    return np.where(kinds == SERIES_KINDS.index("code"), CODE_VALUE, values)


def draw_points(z: np.ndarray, ratio: float, random: np.random.Generator) -> np.ndarray:
    """Single steps, bool [T]."""
    return random.random(len(z)) < ratio


def draw_segments(z: np.ndarray, ratio: float, random: np.random.Generator) -> list[slice]:
    """Segments without overlap that cover about a share `ratio` of [T]."""
    rows = len(z)
    shortest, longest = max(2, min(24, rows // 40)), max(4, min(96, rows // 10))
    taken = np.zeros(rows, dtype=bool)
    found: list[slice] = []
    for _ in range(TRIES):
        if taken.sum() >= ratio * rows:
            break
        length = int(random.integers(shortest, longest))
        first = int(random.integers(1, max(2, rows - length + 1)))
        if not taken[first - 1 : first + length + 1].any():
            found.append(slice(first, min(rows, first + length)))
            taken[found[-1]] = True
    return found


def _on_points(change: Callable[[int, np.random.Generator], np.ndarray]) -> SeriesFault:
    """A fault that adds `change(count, random)` to single steps."""

    def fault(
        z: np.ndarray, ratio: float, random: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        at, result = draw_points(z, ratio, random), z.copy()
        result[at] += change(int(at.sum()), random)
        return result, at

    return fault


def _on_segments(change: Callable[[np.ndarray, np.random.Generator], object]) -> SeriesFault:
    """A fault that puts `change(segment, random)` in place of segments."""

    def fault(
        z: np.ndarray, ratio: float, random: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        at, result = np.zeros(len(z), dtype=bool), z.copy()
        for segment in draw_segments(z, ratio, random):
            result[segment] = change(result[segment], random)
            at[segment] = True
        return result, at

    return fault


def _signs(count: int, random: np.random.Generator) -> np.ndarray:
    """Minus or plus one."""
    return random.choice(np.array([-1.0, 1.0]), count)


def add_points(count: int, random: np.random.Generator) -> np.ndarray:
    """Normal errors of three deviations."""
    return 3 * random.standard_normal(count)


def add_spikes(count: int, random: np.random.Generator) -> np.ndarray:
    """Errors of three to eight deviations, up or down."""
    return _signs(count, random) * random.uniform(3, 8, count)


def leave_range(count: int, random: np.random.Generator) -> np.ndarray:
    """Errors of 12 to 40 deviations, up or down."""
    return _signs(count, random) * random.uniform(12, 40, count)


def add_burst(segment: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """White noise of 1.5 deviations is added."""
    return segment + 1.5 * random.standard_normal(len(segment))


def hold_first(segment: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """The first value is held."""
    return np.full_like(segment, segment[0])


def shift_level(segment: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """A constant of two to four deviations is added, up or down."""
    return segment + _signs(1, random) * random.uniform(2, 4)


def blank(segment: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Values are replaced by a number of the sensor itself, or removed."""
    return np.full_like(segment, np.nan)


def add_constant(count: int, random: np.random.Generator) -> np.ndarray:
    """Half a deviation is added (RobustTSF)."""
    return np.full(count, 0.5)


def add_gaussian(count: int, random: np.random.Generator) -> np.ndarray:
    """Normal errors of two deviations (RobustTSF)."""
    return 2 * random.standard_normal(count)


def set_to_mean(
    z: np.ndarray, ratio: float, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Single steps become the mean (RobustTSF's missing values)."""
    at = draw_points(z, ratio, random)
    return np.where(at, 0.0, z), at


def follow_on(
    z: np.ndarray, ratio: float, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Sequences of bad steps (RobustTSF).

    After a good step a bad one begins with probability 0.3 by adding N(0, 2²); after a bad one it
    goes on with probability `ratio` and holds the last bad value, give or take 0.01.
    """
    result, at = z.copy(), np.zeros(len(z), dtype=bool)
    chance, size = random.random(len(z)), random.standard_normal(len(z))
    for t in range(1, len(z)):
        at[t] = chance[t] < (ratio if at[t - 1] else 0.3)
        if at[t]:
            result[t] = result[t - 1] + 0.01 * size[t] if at[t - 1] else z[t] + 2 * size[t]
    return result, at


SERIES_FAULTS: dict[str, SeriesFault] = {
    "missing": _on_segments(blank),
    "code": _on_segments(blank),
    "zero": _on_segments(blank),
    "stuck": _on_segments(hold_first),
    "spike": _on_points(add_spikes),
    "points": _on_points(add_points),
    "burst": _on_segments(add_burst),
    "shift": _on_segments(shift_level),
    "range": _on_points(leave_range),
    "tsf_const": _on_points(add_constant),
    "tsf_missing": set_to_mean,
    "tsf_gaussian": _on_points(add_gaussian),
    "tsf_seq": follow_on,
}
SERIES_KINDS = ("good", *SERIES_FAULTS)
MIXTURES: dict[str, tuple[str, ...]] = {
    "mix": ("points", "burst", "stuck", "zero"),
    "all": ("missing", "code", "stuck", "spike", "burst", "shift", "range"),
}
