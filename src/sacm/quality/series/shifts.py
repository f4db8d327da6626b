"""Stretches at another level that return: two opposite jumps around an unusual level."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from sacm.quality.series.arrays import Bools, Floats, Ints, find_stretches
from sacm.quality.series.running import five_medians
from sacm.quality.series.weibull_cut import weibull_cut

_LENGTHS = (6, 16, 40, 100)
_STRETCHES = 400
_SIDE = 12
_FEWEST_ROWS = 2000
_SHORTEST = 4
_AHEAD = 8
_LONGEST = (200, 300)
_SHARP = 0.5
_SURE = 2.0
_STRICT = 2.0
_MANY = 6
_STAND_OUT = 0.35
_WANDER = 1.2
_VISITS = 6
_FEW_VISITS = 4
_FEWEST_TO_JUDGE = 500
_APART = 0.15
_SAME_PHASE = 0.03


@dataclass(frozen=True)
class ShiftCuts:
    """What jumps and levels of one channel look like by nature.

    Attributes:
        edge: Jump from which a row can be the edge of a shift.
        step: Change from one row to the next so large that two of them need no more evidence.
        bumps: Natural difference of a stretch from its two sides, for 6, 16, 40 and 100 rows.
        low: Lower end of the usual level.
        high: Upper end of the usual level.
        states: Levels that the channel visits again and again.
        apart: Distance up to which a level is one of these.
        period: Rows of one cycle; 0 without a season.
        rises: Phases of the season at which stretches of a higher level often begin.
        falls: The same for lower levels.
        strict: Factor on what a shift must show; above 1 where many stretches come near it.
    """

    edge: float
    step: float
    bumps: tuple[float, ...]
    low: float
    high: float
    states: tuple[float, ...] = ()
    apart: float = 0.0
    period: int = 0
    rises: tuple[int, ...] = ()
    falls: tuple[int, ...] = ()
    strict: float = 1.0

    def is_habit(self, shift: Shift, start: int) -> bool:
        """Whether the channel often goes to this level or from it, or often at this phase."""
        for level in (shift.level, shift.level - shift.size):
            if any(abs(level - state) <= self.apart for state in self.states):
                return True
        usual = self.rises if shift.size > 0 else self.falls
        return any(_phases_apart(start + shift.first, each, self.period) == 0 for each in usual)

    def is_unusual(self, level: float, difference: float, rows: int, step: float) -> bool:
        """Whether a stretch differs from its sides as natural ones do not.

        Args:
            level: Median of the stretch.
            difference: Its distance from the rows at both sides.
            rows: Its length.
            step: The smaller of the changes from row to row at its two edges.
        """
        bump = self.strict * float(np.interp(np.log(rows), np.log(_LENGTHS), self.bumps))
        outside = not self.low <= level <= self.high
        sharp = step > self.strict * self.step
        if not np.isfinite(bump):
            return outside or sharp
        if difference > 1.5 * bump or step > _SURE * self.strict * self.step:
            return True
        return difference > 0.5 * bump and (outside or sharp)


class Shift(NamedTuple):
    """A stretch that jumps to a level of its own and back.

    Attributes:
        first: First row.
        stop: Row after the last.
        level: Its median.
        size: Signed distance from the rows at both sides.
        unusual: Whether natural stretches do not differ from their sides like this.
    """

    first: int
    stop: int
    level: float
    size: float
    unusual: bool


def find_jumps(plain: Floats) -> Floats:
    """Median of the five rows from each row on less that of the five before it `[T]`."""
    medians = five_medians(np.pad(plain, 5, mode="edge"))
    return medians[5 : 5 + len(plain)] - medians[: len(plain)]


def fit_shifts(
    plain: list[Floats],
    starts: list[int],
    jumps: Floats,
    levels: Floats,
    period: int,
    scale: float,
    sensitivity: float,
    strict: float | None = None,
) -> ShiftCuts:
    """Learn the natural jumps and bumps of one channel.

    Args:
        plain: Values `[T]` of each piece without season, interpolated where not good.
        starts: Row number of each piece's first row.
        jumps: Jumps of the good rows of all pieces `[n]`.
        levels: Good values of all pieces without season `[n]`.
        period: Rows of one cycle; 0 without a season.
        scale: Deviation of the channel.
        sensitivity: Above 1 lowers the cuts.
        strict: Factor on what a shift must show, if it is known; measured if not.
    """
    sizes = np.abs(jumps)
    low, high = np.quantile(levels, [0.05, 0.95])
    margin = 0.15 * (high - low)
    bumps = _natural_bumps(max(plain, key=len))
    steps = np.concatenate([np.abs(np.diff(part)) for part in plain])
    cuts = ShiftCuts(
        edge=max(weibull_cut(sizes, 0.02), 0.8 * scale) / sensitivity,
        step=weibull_cut(steps, 1e-4) / sensitivity,
        bumps=tuple(bump / sensitivity for bump in bumps),
        low=float(low - margin),
        high=float(high + margin),
        period=period,
    )
    rows = sum(map(len, plain))
    if rows < _FEWEST_TO_JUDGE:
        # Too few rows to know whether the channel has states between which it switches.
        return replace(cuts, edge=float("inf"))
    least = _VISITS if rows >= _FEWEST_ROWS else _FEW_VISITS
    listed = [(list_shifts(part, cuts), start) for part, start in zip(plain, starts, strict=True)]
    states, apart = _find_states([shift for found, _ in listed for shift in found], least)
    rises, falls = (
        _find_phases(
            [start + one.first for found, start in listed for one in found if one.size * sign > 0],
            period,
            least,
        )
        for sign in (1, -1)
    )
    cuts = replace(cuts, states=states, apart=apart, rises=rises, falls=falls)
    if strict is None:
        strict = _STRICT if _is_tail(listed, cuts) else 1.0
    return replace(cuts, strict=strict)


def find_shifts(plain: Floats, cuts: ShiftCuts, start: int) -> Bools:
    """Find shifts that return in one piece.

    Args:
        plain: Values `[T]` without season; spikes, bursts and bad values are interpolated.
        cuts: Natural jumps and bumps of the channel.
        start: Row number of the first row.

    Returns:
        Mask of shifts `[T]`.
    """
    shifts = np.zeros(len(plain), bool)
    for shift in list_shifts(plain, cuts):
        if shift.unusual and not cuts.is_habit(shift, start):
            shifts[shift.first : shift.stop] = True
    return shifts


def list_shifts(plain: Floats, cuts: ShiftCuts) -> list[Shift]:
    """Stretches of one piece that jump to a level of their own and back, usual or not."""
    jumps = find_jumps(plain)
    starts, stops = find_stretches(np.abs(jumps) > cuts.edge, 2)
    edges = _sharp_edges(plain, jumps, starts, stops)
    longest = min(max(_LONGEST[0], min(2 * cuts.period, _LONGEST[1])), len(plain) // 5)
    found = []
    index = 0
    while index < len(edges) - 1:
        first, usual = edges[index], None
        for other in range(index + 1, min(index + _AHEAD, len(edges))):
            if edges[other] - first > longest:
                break
            shift = _judge(plain, first, edges[other], cuts)
            if shift is not None and shift.unusual:
                found.append(shift)
                index, usual = other, None
                break
            usual = usual or shift
        if usual is not None:
            found.append(usual)
        index += 1
    return found


def _sharp_edges(plain: Floats, jumps: Floats, starts: Ints, stops: Ints) -> list[int]:
    """Rows where a jump happens from one row to the next; slopes of natural peaks are none."""
    steps = np.diff(plain, prepend=plain[0])
    edges = []
    for start, stop in zip(starts, stops, strict=True):
        top = start + int(np.argmax(np.abs(jumps[start:stop])))
        near = np.arange(max(1, top - 2), min(len(plain), top + 3))
        row = int(near[np.argmax(steps[near] * np.sign(jumps[top]))])
        if steps[row] * np.sign(jumps[top]) >= _SHARP * abs(jumps[top]):
            edges.append(row)
    return edges


def _opposite(first: float, last: float) -> bool:
    """Whether two jumps have opposite signs and sizes within a factor of two."""
    return first * last < 0 and 0.5 < abs(last / first) < 2


def _judge(plain: Floats, first: int, last: int, cuts: ShiftCuts) -> Shift | None:
    """The rows from one edge to the other, if they lie at a level of their own."""
    steps = plain[first] - plain[first - 1], plain[last] - plain[last - 1]
    if not _opposite(*steps) or last - first < _SHORTEST:
        return None
    if first < 2 or last > len(plain) - 2:
        return None
    smaller = min(abs(steps[0]), abs(steps[1]))
    before = float(np.median(plain[max(0, first - _SIDE) : first]))
    after = float(np.median(plain[last : last + _SIDE]))
    # Between two steps that nature hardly makes, the level may wander further.
    wander = _WANDER if smaller > cuts.step else 0.6
    if abs(before - after) >= wander * abs(steps[0]):
        return None
    level = float(np.median(plain[first:last]))
    difference = level - (before + after) / 2
    if abs(difference) <= 0.6 * smaller or difference * steps[0] <= 0:
        return None
    unusual = cuts.is_unusual(level, abs(difference), last - first, smaller)
    return Shift(first, last, level, difference, unusual)


def _is_tail(listed: list[tuple[list[Shift], int]], cuts: ShiftCuts) -> bool:
    """Whether the unusual shifts are the few largest of many, as by nature."""
    strange = [
        shift.unusual
        for found, start in listed
        for shift in found
        if not cuts.is_habit(shift, start)
    ]
    return len(strange) >= _MANY and bool(np.mean(strange) < _STAND_OUT)


def _find_states(shifts: list[Shift], least: int) -> tuple[tuple[float, ...], float]:
    """Levels to which enough shifts, and a quarter of all, lead: states of the channel."""
    if len(shifts) < least:
        return (), 0.0
    levels = np.sort([shift.level for shift in shifts])
    apart = _APART * float(np.median([abs(shift.size) for shift in shifts]))
    visits = np.searchsorted(levels, levels + apart) - np.searchsorted(levels, levels - apart)
    often = levels[visits >= max(least, 0.25 * len(shifts))]
    return tuple(float(each) for each in _thin(often, apart)), 2 * apart


def _find_phases(rows: list[int], period: int, least: int) -> tuple[int, ...]:
    """Phases of the season at which enough shifts, and a quarter of all, begin."""
    if not period or len(rows) < least:
        return ()
    phases = np.array(rows) % period
    near = np.array([np.sum(_phases_apart(phases, phase, period) == 0) for phase in phases])
    often = phases[near >= max(least, 0.25 * len(rows))]
    return tuple(int(each) for each in np.unique(often))


def _phases_apart(rows: Ints | int, phase: int, period: int) -> Any:
    """Rows between the phase of each row and a given phase, beyond what counts as the same."""
    away = np.abs((np.asarray(rows) - phase + period // 2) % period - period // 2)
    return np.maximum(away - max(1, round(_SAME_PHASE * period)), 0)


def _thin(levels: Floats, apart: float) -> list[float]:
    """Ordered levels without those that lie near the one kept before."""
    kept: list[float] = []
    for level in levels:
        if not kept or level - kept[-1] > apart:
            kept.append(float(level))
    return kept


def _natural_bumps(plain: Floats) -> list[float]:
    """How far stretches of several lengths differ from their two sides by nature."""
    generator = np.random.default_rng(0)
    cuts: list[float] = []
    for length in _LENGTHS:
        if len(plain) < max(20 * length, _FEWEST_ROWS):
            cuts.append(cuts[-1] if cuts else float("inf"))
            continue
        first = generator.integers(_SIDE, len(plain) - length - _SIDE, _STRETCHES)[:, None]
        inside = np.median(plain[first + np.arange(length)], axis=1)
        before = np.median(plain[first - 1 - np.arange(_SIDE)], axis=1)
        after = np.median(plain[first + length + np.arange(_SIDE)], axis=1)
        cuts.append(weibull_cut(np.abs(inside - (before + after) / 2), 2e-3))
    return cuts
