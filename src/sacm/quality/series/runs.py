"""Runs of equal values: how long they are by nature, and which are a stuck sensor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sacm.quality.series.arrays import Bools, Floats, Ints

_SAME = 1e-9
_PIECE = 3
_PARTED = 2
_SHORTEST = 5
_LEVEL = 4
_AT_BOUND = 8
_BOUNDS = (0.0, 1.0, 100.0)
_FEW_AT_BOUND = 4
_TAIL = 0.15
_HARDLY = 3.5
_FEWEST_RESTS = 5
_MOSTLY = 0.5


@dataclass(frozen=True)
class RunModel:
    """What runs of equal values look like in one channel by nature.

    Attributes:
        rests: Values at which the channel rests (rain at 0, radiation at night).
        longest: Shortest run that counts as stuck.
        stepwise: Whether long runs are common, so that a stuck run must also begin or end in a
            jump.
        jump: Size from which such a jump counts.
        flat: Whether runs are long by nature or most rows lie in runs of four and more, so
            that levels that come and go are natural.
        same: Difference up to which two values are equal.
        near: Jump up to which the channel came to a run and left it with hardly a movement, so
            that it is a rest; 0 if that cannot be told.
    """

    rests: tuple[float, ...]
    longest: int
    stepwise: bool
    jump: float
    flat: bool
    same: float
    near: float = 0.0


def find_runs(values: Floats, same: float = 0.0) -> tuple[Ints, Ints]:
    """First rows and rows after the last of the runs of equal values.

    Two runs of at least three rows of the same value with at most two other values between them
    are one run: a spike inside a held stretch does not end it.

    Args:
        values: Values `[T]`; NaN equals nothing.
        same: Difference up to which values are equal.
    """
    changes = np.flatnonzero(~(np.abs(np.diff(values)) <= same)) + 1
    starts = np.concatenate(([0], changes))
    stops = np.concatenate((changes, [len(values)]))
    large = np.flatnonzero(stops - starts >= _PIECE)
    if len(large) < 2:
        return starts, stops
    first, second = large[:-1], large[1:]
    linked = (starts[second] - stops[first] <= _PARTED) & (
        np.abs(values[starts[second]] - values[starts[first]]) <= same
    )
    if not linked.any():
        return starts, stops
    heads = np.flatnonzero(np.concatenate(([True], ~linked)))
    tails = np.concatenate((heads[1:], [len(large)])) - 1
    keep = np.ones(len(starts), bool)
    stops = stops.copy()
    for head, tail in zip(large[heads], large[tails], strict=True):
        if tail > head:
            keep[head + 1 : tail + 1] = False
            stops[head] = stops[tail]
    return starts[keep], stops[keep]


def fit_runs(parts: list[Floats], scale: float, sensitivity: float = 1.0) -> RunModel:
    """Learn the natural runs of one channel.

    An outage is one run however long it lasts, so lengths are judged by counting runs: the
    natural end is the first length from which on hardly any run is seen for half an octave.

    Args:
        parts: Pieces `[T]` of the channel, NaN where a value is missing or a gap code.
        scale: Deviation of the channel.
        sensitivity: Above 1 shortens the runs that count as stuck.
    """
    same = _SAME * scale
    steps = np.concatenate([np.abs(np.diff(part)) for part in parts])
    steps = steps[steps > same]
    step, large_step = np.quantile(steps, [0.5, 0.9]) if len(steps) else (same, same)
    tables = [_tabulate(part, same) for part in parts]
    values, lengths, jumps = (np.concatenate(column) for column in zip(*tables, strict=True))
    rows = int(lengths.sum())
    rests = _find_rests(_snap(values, same), lengths, jumps, 1.5 * float(step), rows)
    other = lengths[~match_values(values, rests, same)]
    end = _natural_end(other)
    stepwise = bool(end > 6 or np.mean(other >= 2) > 0.25) if len(other) else True
    longest = max(_SHORTEST, round(_pass_tail(other, 2 * end) / sensitivity))
    long = (lengths >= longest) & ~match_values(values, rests, same)
    return RunModel(
        rests=rests,
        longest=longest,
        stepwise=stepwise,
        jump=max(2 * float(large_step), 0.3 * scale) / sensitivity,
        flat=bool(end > 6 or lengths[lengths >= _LEVEL].sum() > 0.5 * rows),
        same=same,
        near=_find_near(steps, jumps[long]),
    )


def find_stuck(values: Floats, model: RunModel) -> Bools:
    """Rows of one piece that belong to a run longer than the channel has by nature.

    Args:
        values: Values `[T]`, NaN where a value is missing or a gap code.
        model: Natural runs of the channel.
    """
    starts, stops = find_runs(values, model.same)
    held = values[starts]
    stuck = (stops - starts >= model.longest) & np.isfinite(held)
    stuck &= ~match_values(held, model.rests, model.same)
    if model.stepwise:
        stuck &= _edge_jumps(values, starts, stops).max(axis=0) > model.jump
    if model.near:
        # A sensor that works again finds the channel somewhere else; an arm at rest is still there.
        stuck &= _edge_jumps(values, starts, stops).max(axis=0) > model.near
    return _mark(starts[stuck], stops[stuck], len(values))


def find_stuck_so_far(values: Floats, model: RunModel) -> Bools:
    """Like `find_stuck`, but a row is judged by itself and the rows before it alone."""
    rows = np.arange(len(values))
    changed = np.concatenate(([True], ~(np.abs(np.diff(values)) <= model.same)))
    first = np.maximum.accumulate(np.where(changed, rows, 0))
    stuck = rows - first + 1 >= model.longest
    stuck &= ~match_values(values, model.rests, model.same)
    if model.stepwise:
        entry = np.concatenate(([0.0], np.abs(np.diff(values))))
        stuck &= np.nan_to_num(entry)[first] > model.jump
    return stuck


def match_values(values: Floats, wanted: tuple[float, ...], same: float) -> Bools:
    """Where values equal one of the wanted ones, up to the given difference."""
    found = np.zeros(len(values), bool)
    for each in wanted:
        found |= np.abs(values - each) <= 2 * same
    return found


def _snap(values: Floats, same: float) -> Floats:
    """Values rounded so that equal ones compare equal."""
    return np.round(values / same) * same if same > 0 else values


def _tabulate(values: Floats, same: float) -> tuple[Floats, Ints, Floats]:
    """Value, length and gentler-than-it-seems edge jumps `[2, runs]` of every finite run."""
    starts, stops = find_runs(values, same)
    kept = np.isfinite(values[starts])
    starts, stops = starts[kept], stops[kept]
    return values[starts], stops - starts, _edge_jumps(values, starts, stops, beyond=2).T


def _edge_jumps(values: Floats, starts: Ints, stops: Ints, beyond: int = 1) -> Floats:
    """Jumps `[2, runs]` at both ends; the smallest over `beyond` outer rows; 0 where unknown."""
    padded = np.concatenate((np.full(beyond, np.nan), values, np.full(beyond, np.nan)))
    held = values[starts]
    before = np.stack([np.abs(padded[starts + beyond - 1 - i] - held) for i in range(beyond)])
    after = np.stack([np.abs(padded[stops + beyond + i] - held) for i in range(beyond)])
    jumps = np.stack([np.fmin.reduce(before), np.fmin.reduce(after)])
    return np.nan_to_num(jumps) if beyond == 1 else jumps


def _find_near(steps: Floats, jumps: Floats) -> float:
    """Change from row to row with which a rest begins and ends; 0 if the channel has no rests.

    Args:
        steps: Sizes of the changes from row to row that are no ties.
        jumps: Jumps `[runs, 2]` at both ends of the runs that are long enough to be stuck.
    """
    if len(jumps) < _FEWEST_RESTS:
        return 0.0
    near = _HARDLY * float(np.quantile(steps, 0.05))
    known = np.isfinite(jumps)
    gentle = known.any(axis=1) & (np.where(known, jumps, 0.0).max(axis=1) <= near)
    return near if gentle.mean() >= _MOSTLY else 0.0


def _find_rests(
    values: Floats, lengths: Ints, jumps: Floats, gentle: float, rows: int
) -> tuple[float, ...]:
    """Values with many runs whose long ones are entered and left gently."""
    distinct, position, counts = np.unique(values, return_inverse=True, return_counts=True)
    held_rows = np.bincount(position, weights=lengths)
    found: list[float] = []
    always = (held_rows >= 0.6 * rows) | ((held_rows >= 0.4 * rows) & (counts >= 2))
    found.extend(float(each) for each in distinct[always])
    for index in np.flatnonzero(~always & (counts >= 8) & (held_rows >= 0.02 * rows)):
        runs = np.flatnonzero(position == index)
        ordered = np.sort(lengths[runs])
        half = ordered[np.searchsorted(np.cumsum(ordered), 0.5 * ordered.sum())]
        runs = runs[lengths[runs] >= max(3, half)]
        edges = jumps[runs][np.isfinite(jumps[runs])]
        if half >= 4 and len(runs) >= 5 and len(edges) and np.median(edges) <= gentle:
            found.append(float(distinct[index]))
    for end, other in ((0, -1), (-1, 0)):
        # What rests at one of its bounds also stays at the other one by nature.
        if distinct[other] in found and counts[end] >= 2 and held_rows[end] >= _AT_BOUND:
            found.append(float(distinct[end]))
        elif np.isclose(distinct[end], _BOUNDS).any():
            # Humidity stays at 100 %, a deficit at 0: reached and left gently, it is natural.
            runs = np.flatnonzero((position == end % len(distinct)) & (lengths >= _PIECE))
            edges = jumps[runs][np.isfinite(jumps[runs])]
            if len(runs) >= _FEW_AT_BOUND and len(edges) and np.median(edges) <= gentle:
                found.append(float(distinct[end]))
    return tuple(found)


def _natural_end(lengths: Ints) -> int:
    """First length from which on hardly any run is seen for half an octave.

    With fewer than fifty runs of two and more an empty half octave says little: a wider one
    is asked for.
    """
    if not len(lengths):
        return 2
    widen = 1.5 if np.sum(lengths >= 2) >= 50 else 2.5
    counts = np.concatenate(([0], np.cumsum(np.bincount(lengths))))
    candidates = np.arange(max(2, int(np.median(lengths))), len(counts) + 1)
    upper = np.minimum((widen * candidates + 2).astype(int), len(counts) - 1)
    within = counts[upper] - counts[np.minimum(candidates, len(counts) - 1)]
    return int(candidates[np.argmax(within <= max(1.0, 0.002 * len(lengths)))])


def _pass_tail(lengths: Ints, first: int) -> int:
    """A length moved up while the runs beyond it are the tail of those just below it."""
    longest = max(_SHORTEST, first)
    while longest <= lengths.max(initial=0):
        beyond = np.sum(lengths >= longest)
        below = np.sum((lengths >= longest / 1.5) & (lengths < longest))
        if below <= max(1, _TAIL * beyond):
            break
        longest += max(1, longest // 4)
    return longest


def _mark(starts: Ints, stops: Ints, rows: int) -> Bools:
    """Mask `[rows]` that holds from each start to its stop."""
    edges = np.zeros(rows + 1, np.int64)
    np.add.at(edges, starts, 1)
    np.add.at(edges, stops, -1)
    return np.cumsum(edges[:-1]) > 0
