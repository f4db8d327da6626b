"""Faults with known places, put into healthy rows: what detection is measured against."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

SINGLE = ("spike", "points", "range")
STRETCHES = ("missing", "code", "zero", "stuck", "burst", "shift", "drift", "near_stuck")
KINDS = (*STRETCHES, *SINGLE, "clipped", "mix", "all")
MIXES = {
    "mix": ("points", "burst", "stuck", "zero"),
    "all": ("missing", "code", "stuck", "spike", "burst", "shift", "range"),
}
CODE = -9999.0


def inject(
    values: np.ndarray, kind: str, share: float, seed: int
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Rows with faults, their truth and the names of the truth's numbers.

    Stretches last 24 to 96 rows, in short series a fortieth to a tenth of them; every channel
    is hit by itself. Sizes are in deviations of the channel: spikes 3 to 8, isolated; points
    N(0, 3); range 12 to 40; bursts N(0, 1.5); shifts 2 to 4; drifts rise to 2 to 4 and end at
    once; near_stuck holds the first value plus N(0, 0.01). Clipped channels are cut off at one
    fixed quantile, above or below.

    Args:
        values: Healthy rows `[T, C]`.
        kind: One of `KINDS`.
        share: Share of the values that are hit.
        seed: Number of the random draw.

    Returns:
        Values `[T, C]`, truth `[T, C]` (0 for healthy, 1 + position in the names where a fault
        changed the value, -1 where it left the value as it was, such as zeros in rain), names.
    """
    generator = np.random.default_rng(seed)
    broken = values.astype(float)
    truth = np.zeros(values.shape, np.int8)
    names = MIXES.get(kind, (kind,))
    deviations = np.nanstd(values, axis=0)
    deviations = np.where(deviations > 0, deviations, 1.0)
    for channel in range(values.shape[1]):
        for number, name in enumerate(names, 1):
            column, mark = broken[:, channel], truth[:, channel]
            size, part = deviations[channel], share / len(names)
            if name in SINGLE:
                _hit_points(column, mark, name, number, part, size, generator)
            elif name == "clipped":
                _clip(column, mark, number, part, generator)
            else:
                slack = 0.2 if len(names) > 1 else 0.0
                _hit_stretches(column, mark, name, number, part, size, slack, generator)
    same = (truth > 0) & (broken == values)
    truth[same] = -1
    return broken, truth, names


def _hit_points(
    column: np.ndarray,
    mark: np.ndarray,
    name: str,
    number: int,
    share: float,
    size: float,
    generator: np.random.Generator,
) -> None:
    """Add offsets at single rows."""
    hit = (generator.random(len(column)) < share) & (mark == 0)
    if name == "spike":
        hit[1:] &= ~hit[:-1]
    count = int(hit.sum())
    sign = generator.choice([-1.0, 1.0], count)
    offsets = {
        "points": 3 * generator.standard_normal(count),
        "spike": sign * generator.uniform(3, 8, count),
        "range": sign * generator.uniform(12, 40, count),
    }[name]
    column[hit] += size * offsets
    mark[hit] = number


def _clip(
    column: np.ndarray, mark: np.ndarray, number: int, share: float, generator: np.random.Generator
) -> None:
    """Cut a channel off at one quantile."""
    above = generator.random() < 0.5
    limit = np.nanquantile(column, 1 - share if above else share)
    changed = column > limit if above else column < limit
    column[changed] = limit
    mark[changed] = number


def _hit_stretches(
    column: np.ndarray,
    mark: np.ndarray,
    name: str,
    number: int,
    share: float,
    size: float,
    slack: float,
    generator: np.random.Generator,
) -> None:
    """Break stretches until the share is reached."""
    rows, done = len(column), 0
    shortest, longest = max(4, min(24, rows // 40)), max(8, min(96, rows // 10))
    for trial in range(5000):
        if done >= share * rows:
            break
        length = int(generator.integers(shortest, longest))
        first = int(generator.integers(1, max(2, rows - length)))
        if trial < 3000 and np.mean(mark[first - 1 : first + length + 1] > 0) > slack:
            continue
        stretch = slice(first, first + length)
        column[stretch] = _STRETCH[name](column[stretch], size, generator)
        mark[stretch] = number
        done += length


_Change = Callable[[np.ndarray, float, np.random.Generator], np.ndarray | float]
_STRETCH: dict[str, _Change] = {
    "missing": lambda v, size, g: np.nan,
    "code": lambda v, size, g: CODE,
    "zero": lambda v, size, g: 0.0,
    "stuck": lambda v, size, g: float(v[0]),
    "burst": lambda v, size, g: v + 1.5 * size * g.standard_normal(len(v)),
    "shift": lambda v, size, g: v + g.choice([-1, 1]) * g.uniform(2, 4) * size,
    "drift": lambda v, size, g: (
        v + g.choice([-1, 1]) * g.uniform(2, 4) * size * np.linspace(0, 1, len(v))
    ),
    "near_stuck": lambda v, size, g: v[0] + 0.01 * size * g.standard_normal(len(v)),
}
