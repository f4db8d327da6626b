"""Five checks of a table: value, run length, point, scale and level.

Each check compares values with the ordinary behaviour of their channel, described by quantiles that
normal values decide while at most a third of the rows is broken. A move that related channels or
the neighbours in time make as well is no fault: residuals are divided by theirs, unless large
residuals are independent of each other, as faults of single rows are and natural ones are not.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Self

import numpy as np

from sacm.quality.config import (
    BURST,
    CODE,
    FAIL,
    MISSING,
    NORMAL,
    NORMAL_MEDIAN,
    SHIFT,
    SPIKE,
    STUCK,
    SUSPECT,
    GuardConfig,
)
from sacm.quality.predictor import (
    QUANTILE_WIDTH,
    QUANTILES,
    TINY,
    Array,
    Rows,
    column_quantiles,
    find_season,
    find_segments,
    interpolate,
    nearby_score,
    neighbour_residual,
    related_channels,
    running_median,
    shared_score,
    usual_size,
)

LONGEST_COUNTED = 999  # rows; longer runs are counted as this long


class Judgement(NamedTuple):
    """Flags and grades of a table, uint8 `[T, C]`."""

    flags: Array
    grades: Array


@dataclass
class Levels:
    """Ordinary behaviour of the C channels, as the checks learnt it from training rows.

    Attributes:
        codes: Gap codes of each channel.
        rests: Values at which each channel rests by nature.
        run_limit: `[C]` rows of the shortest run that normal rows make too seldom.
        jump: `[C]` smallest step that is a jump.
        centre, bend, scale: `[C]` the channel in deviations is `(x - centre) / scale`, or
            `asinh((x - centre) / bend) / scale` where `bend` is not 0.
        judged: `[C]` whether residuals of the channel are judged.
        resting: `[C]` whether it often stays at a value: its bursts may be real.
        season: Rows of a season; 0 for none.
        size: `[C]` usual size of residuals, in deviations.
        lone: `[C]` whether large residuals are independent of each other.
        one_sided: `[C]` whether spikes are common and mostly go one way: they may be real.
        related: `[C, C]` which channels move together.
        fail_cut, suspect_cut: `[C]` residuals from which on a point is flagged.
        burst: `[2, 3, season, C]` for both widths: expected logarithm of the running median of
            residuals, its deviation, and its smallest cut.
        step: `[C]` usual size of steps, in deviations.
        step_related: `[C, C]` which channels step together.
        bump: `[n, C]` by how much the level of 2, 4, 8, ... rows leaves its surroundings.
    """

    codes: list[list[float]]
    rests: list[list[float]]
    run_limit: Array
    jump: Array
    centre: Array
    bend: Array
    scale: Array
    judged: Array
    resting: Array
    season: int
    size: Array
    lone: Array
    one_sided: Array
    related: Array
    fail_cut: Array
    suspect_cut: Array
    burst: Array
    step: Array
    step_related: Array
    bump: Array

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers."""
        record = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in record.items()
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        """The levels that `to_dict` described."""
        kept = {name: record[name] for name in ("codes", "rests", "season")}
        arrays: dict[str, Any] = {k: np.asarray(v) for k, v in record.items() if k not in kept}
        return cls(**arrays, **kept)


def learn(
    values: Array, rows: Rows, config: GuardConfig, broken: Array | None = None
) -> tuple[Levels, Judgement]:
    """Learn the ordinary behaviour of a table, and judge the same table.

    Args:
        values: Training rows `[T, C]`, NaN where missing.
        rows: Their segments.
        config: The thresholds.
        broken: `[T, C]` what is known to be broken; nothing is learnt from it.
    """
    return _run(values, rows, config, None, broken)


def judge(
    values: Array, rows: Rows, config: GuardConfig, levels: Levels, broken: Array | None = None
) -> Judgement:
    """Judge rows `[T, C]` by what was learnt; a segment by itself alone."""
    parts = []
    for own, part in rows.apart():
        known = None if broken is None else broken[own]
        parts.append(_run(values[own], part, config, levels, known)[1])
    return Judgement(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _run(
    values: Array, rows: Rows, config: GuardConfig, levels: Levels | None, broken: Array | None
) -> tuple[Levels, Judgement]:
    """All checks in order; learns what `levels` does not tell."""
    values = np.asarray(values, np.float64)
    count, channels = values.shape
    learning = levels is None
    levels = _blank(channels) if levels is None else levels
    flags, grades = np.zeros((2, count, channels), np.uint8)
    excluded = np.zeros(values.shape, bool) if broken is None else broken
    for channel in range(channels):
        column, ignored = values[:, channel], excluded[:, channel]
        if learning:
            levels.codes[channel] = find_codes(column[~ignored], config)
        own = check_values(column, levels.codes[channel])
        check_runs(column, own, ignored, rows, config, levels, channel, learning)
        flags[:, channel] = own
    grades[flags > 0] = FAIL
    known = (flags > 0) | excluded
    if learning:
        for channel in range(channels):
            learn_scale(values[:, channel], ~known[:, channel], config, levels, channel)
    scaled = in_deviations(values, known, levels)
    if learning:
        part = rows.longest
        levels.season = find_season(interpolate(scaled[part], known[part]))[0]
    residuals_and_flags = check_points_and_bursts(scaled, known, rows, config, levels, learning)
    for own_flag, own_grade in residuals_and_flags:
        free = (flags == 0) & ~excluded & (own_grade > 0)
        flags[free], grades[free] = own_flag, own_grade[free]
    known = (flags > 0) | excluded
    shifted = check_shifts(scaled, known, rows, config, levels, learning)
    free = shifted & (flags == 0) & ~excluded
    flags[free], grades[free] = SHIFT, SUSPECT
    return levels, Judgement(flags, grades)


def _blank(channels: int) -> Levels:
    """Levels by which nothing is flagged."""
    zeros, ones = ("jump", "centre", "bend"), ("scale", "size", "step")
    return Levels(
        **{name: np.zeros(channels) for name in zeros},
        **{name: np.ones(channels) for name in ones},
        **{name: np.zeros(channels, bool) for name in ("judged", "resting", "lone", "one_sided")},
        **{name: np.full(channels, np.inf) for name in ("fail_cut", "suspect_cut")},
        **{name: np.zeros((channels, channels), bool) for name in ("related", "step_related")},
        codes=[[] for _ in range(channels)],
        rests=[[] for _ in range(channels)],
        run_limit=np.full(channels, LONGEST_COUNTED + 1),
        season=0,
        burst=np.zeros((2, 3, 1, channels)),
        bump=np.full((1, channels), np.inf),
    )


# Check 1: the value itself


def find_codes(column: Array, config: GuardConfig) -> list[float]:
    """Values that stand for a gap: extremes that recur, beyond the span of all other values."""
    values, counts = np.unique(column[np.isfinite(column)], return_counts=True)
    codes: list[float] = []
    while len(values) >= config.fewest_levels:
        low = abs(values[0] - values[1]) > abs(values[1] - values[-1])
        high = abs(values[-1] - values[-2]) > abs(values[-2] - values[0])
        low, high = low and counts[0] >= config.code_count, high and counts[-1] >= config.code_count
        if not (low or high):
            break
        place = 0 if low else -1
        codes.append(float(values[place]))
        values, counts = np.delete(values, place), np.delete(counts, place)
    return codes


def check_values(column: Array, codes: list[float]) -> Array:
    """Flags `[T]` of values that are missing or a gap code: `x is NaN or x in codes`."""
    flags = np.where(np.isfinite(column), 0, MISSING).astype(np.uint8)
    flags[np.isin(column, codes)] = CODE
    return flags


# Check 2: the length of runs of equal values


def check_runs(
    column: Array,
    flags: Array,
    ignored: Array,
    rows: Rows,
    config: GuardConfig,
    levels: Levels,
    channel: int,
    learning: bool,
) -> None:
    """Flag runs of equal values that are too long: `length >= run_limit`.

    The limit is the shortest length that a geometric tail allows less than `false_rate` times a
    row. A long run is stuck if it ends in a jump, or is `long_run` times as long as the limit. A
    value with several long runs is a gap code, unless the channel rests there by nature.
    """
    at = np.flatnonzero((flags == 0) & ~ignored)
    values = column[at]
    state = len(np.unique(values)) < config.fewest_levels and learning
    if state or len(values) < config.shortest_run:  # a state or a constant may stay for ever
        return
    change = (values[1:] != values[:-1]) | (rows.first[at[1:]] != rows.first[at[:-1]])
    first = np.flatnonzero(np.concatenate([[True], change]))
    stop = np.append(first[1:], len(values))
    length, level = stop - first, values[first]
    steps = np.abs(np.diff(level))
    if learning and len(steps):
        levels.run_limit[channel] = _run_limit(length, len(values), config)
        levels.jump[channel] = np.quantile(steps, config.jump)
    limit, jump = int(levels.run_limit[channel]), levels.jump[channel]
    long = np.flatnonzero(length >= limit)
    if not len(long):
        return
    jumps = steps > jump
    enter = np.concatenate([[False], jumps])[long]
    leave = np.append(jumps, False)[long]
    if learning:
        _learn_rests(length, level, long, enter, leave, config, levels, channel)
    coded = np.isin(level[long], levels.codes[channel])
    resting = np.isin(level[long], levels.rests[channel])
    stuck = ~resting & (leave | (length[long] > config.long_run * limit))
    for run in np.flatnonzero(coded | stuck):
        own = flags[at[first[long[run]]] : at[stop[long[run]] - 1] + 1]
        own[own == 0] = CODE if coded[run] else STUCK


def _run_limit(length: Array, rows: int, config: GuardConfig) -> int:
    """Shortest run expected less than `false_rate` times a row.

    The chance to go on is that of runs which fill too many rows to be faults.
    """
    capped = np.minimum(length, LONGEST_COUNTED)
    runs = np.bincount(capped, minlength=LONGEST_COUNTED + 2).astype(float)
    survive = runs[::-1].cumsum()[::-1]  # runs of k rows and more
    filled = np.bincount(capped, weights=length, minlength=LONGEST_COUNTED + 2)[::-1].cumsum()[::-1]
    last = max(1, int(np.flatnonzero(filled > config.most_broken * rows)[-1]))
    rate = config.suspect_rate
    go_on = np.clip(survive[last + 1] / max(survive[last], 1), rate, 1 - rate)
    more = np.log(config.false_rate * rows / max(survive[last], 1)) / np.log(go_on)
    limit = max(config.shortest_run, last + int(np.ceil(max(0, more))))
    return min(limit, LONGEST_COUNTED)


def _learn_rests(
    length: Array,
    level: Array,
    long: Array,
    enter: Array,
    leave: Array,
    config: GuardConfig,
    levels: Levels,
    channel: int,
) -> None:
    """Values with several long runs: gap codes, or values at which the channel rests."""
    short = length < levels.run_limit[channel]
    ties = (length - 1)[short].sum() > config.tied * length[short].sum()
    brief = np.sort(level[short & (length > 1)])
    for value in np.unique(level[long]):
        own = level[long] == value
        count = int(own.sum())
        if count < config.code_count:
            continue
        briefly = np.searchsorted(brief, value, "right") - np.searchsorted(brief, value, "left")
        edges = (enter[own].mean() + leave[own].mean()) / 2
        if briefly < count / 2 and (edges > config.jump or not ties):
            levels.codes[channel].append(float(value))
        else:
            levels.rests[channel].append(float(value))


# Units


def learn_scale(
    column: Array, good: Array, config: GuardConfig, levels: Levels, channel: int
) -> None:
    """Centre, scale and skewness of a channel, and whether its residuals can be judged."""
    tail = 0.02
    known = column[good]
    moving = (np.diff(known) != 0).mean() if len(known) > 1 else 0.0
    if len(known) < config.fewest_values or moving < config.moving:
        return
    levels.resting[channel] = moving < config.restless
    low, middle, high = np.quantile(known, (tail, 1 / 2, 1 - tail))
    narrow, wide = sorted((middle - low, high - middle))
    bend = narrow if 0 < config.skewed * narrow < wide else 0.0
    moved = np.arcsinh((known - middle) / bend) if bend else known - middle
    left, right = np.quantile(moved, QUANTILES)
    scale = (right - left) / QUANTILE_WIDTH or np.std(moved)
    levels.centre[channel], levels.bend[channel] = middle, bend
    levels.scale[channel], levels.judged[channel] = scale or 1.0, scale > 0


def in_deviations(values: Array, known: Array, levels: Levels) -> Array:
    """Values `[T, C]` in deviations; 0 where a channel is not judged or a value is not normal."""
    moved = np.where(np.isfinite(values), values, levels.centre) - levels.centre
    bent = np.arcsinh(moved / np.where(levels.bend > 0, levels.bend, 1.0))
    scaled = np.where(levels.bend > 0, bent, moved) / levels.scale
    return np.where(levels.judged, scaled, 0.0)


# Checks 3 and 4: points and bursts


def check_points_and_bursts(
    scaled: Array, known: Array, rows: Rows, config: GuardConfig, levels: Levels, learning: bool
) -> list[tuple[int, Array]]:
    """Grades `[T, C]` of bursts and of spikes, as `(flag, grades)`.

    A point is flagged if `residual / (local size * shared) > cut`. The residual is the distance
    from kept neighbours; `shared` is what related channels or the neighbours' own residuals show
    at the time (1 where large residuals are independent). Residuals are computed again without
    what was flagged.
    """
    wild = np.zeros(scaled.shape, bool)
    burst = np.zeros(scaled.shape, np.uint8)
    spike = np.zeros(scaled.shape, np.uint8)
    known = known.copy()
    first_cut = config.point_cut(config.false_rate)
    for turn in range(config.rounds):
        last = turn == config.rounds - 1
        residual, score, plain, up = _residual_scores(
            scaled, known, wild, rows, config, levels, learning
        )
        if learning:
            large = config.together
            levels.lone = _independent(plain > large, known, config)
            levels.related = related_channels(score, known, large, config.related)
        shared = shared_score(score, levels.related)
        divided = np.where(levels.lone, score, score / np.maximum(shared, nearby_score(score)))
        if learning:
            free = ~known
            wrong = np.where(levels.lone, config.lone_wrong_share, config.wrong_share)
            levels.fail_cut = _cuts(divided, free, wrong, config.false_rate, config)
            levels.suspect_cut = _cuts(divided, free, wrong, config.suspect_rate, config)
        material = (residual > config.material) & ~known
        fail = (divided > (levels.fail_cut if turn else first_cut)) & material
        wild = fail
        if last:
            common = levels.fail_cut < first_cut * (1 - config.wrong_share)
            if learning:
                levels.one_sided = (common | levels.lone) & _one_sided(fail, up, config)
            far = common | (residual > config.spike_fail)
            alone = levels.lone | ((shared < config.together) & far & ~levels.resting)
            spike[(divided > levels.suspect_cut) & material] = SUSPECT
            spike[fail & alone & ~levels.one_sided] = FAIL
        if turn == 1 or last:
            found = check_bursts(residual, known, rows, config, levels, learning)
            burst = np.maximum(burst, found)
            known |= found > 0
            wild &= ~(found > 0)
    burst[(burst == FAIL) & levels.one_sided] = SUSPECT
    return [(BURST, burst), (SPIKE, spike)]


def _residual_scores(
    scaled: Array,
    known: Array,
    wild: Array,
    rows: Rows,
    config: GuardConfig,
    levels: Levels,
    learning: bool,
) -> tuple[Array, Array, Array, Array]:
    """Residuals `[T, C]` in deviations, over their local and their usual size, and their sign."""
    residual, score, plain = np.zeros((3, *scaled.shape))
    up = np.zeros(scaled.shape, bool)
    here = np.arange(len(scaled))
    for channel in np.flatnonzero(levels.judged):
        kept = ~(known[:, channel] | wild[:, channel])
        at = np.flatnonzero(kept)
        enough = len(at) >= (config.fewest_values // 2 if learning else 2)
        if learning:
            levels.judged[channel] = enough
        if not enough:
            continue
        signed = neighbour_residual(scaled[:, channel], kept, rows)
        up[:, channel] = signed > 0
        own = np.where(known[:, channel], 0.0, np.abs(signed))
        if learning:
            levels.size[channel] = usual_size(own[at], config.moving)
        size = levels.size[channel]
        local = running_median(own[at], config.local_rows) / NORMAL_MEDIAN
        residual[:, channel], plain[:, channel] = own, own / size
        score[:, channel] = own / np.maximum(np.interp(here, at, local), size)
    return residual, score, plain, up


def _one_sided(fail: Array, up: Array, config: GuardConfig) -> Array:
    """Channels `[C]` whose spikes mostly go one way: promotions, rain or beats, not faults."""
    count, above = fail.sum(0), (fail & up).sum(0)
    most = np.maximum(above, count - above)
    return (count >= config.fewest_spikes) & (most > config.one_sided * count)


def _independent(wild: Array, known: Array, config: GuardConfig) -> Array:
    """Channels `[C]` whose large residuals follow each other by chance only, at short lags."""
    lags, common = range(1, config.burst_shortest + 1), 0.01
    share = wild.sum(0) / np.maximum((~known).sum(0), 1)
    pairs = [
        (wild[k:] & wild[:-k]).sum(0) / np.maximum((~known[k:] & ~known[:-k]).sum(0), 1)
        for k in lags
    ]
    ratio = np.stack(pairs) / np.maximum(share, TINY) ** 2
    chance = (ratio.max(0) < config.independent) & (ratio.min(0) > 1 / config.independent)
    return (share > common) & chance


def _cuts(
    scores: Array, free: Array, wrong_share: Array, rate: float, config: GuardConfig
) -> Array:
    """The smallest score `[C]` at which false flags stay within their budget.

    Expected false flags are `2^(-s / 0.6745)` of the values. They may be `rate` of all values, or
    `wrong_share` of the flagged ones where more are flagged (Benjamini and Hochberg).
    """
    least = 3.0
    cuts = np.empty(scores.shape[1])
    for channel in range(scores.shape[1]):
        ordered = -np.sort(-scores[free[:, channel], channel])
        count = len(ordered)
        allowed = np.maximum(rate, wrong_share[channel] * np.arange(1, count + 1) / max(count, 1))
        fine = np.flatnonzero(np.exp2(-ordered / NORMAL_MEDIAN) <= allowed)
        reached = np.nextafter(ordered[fine[-1]], 0) if len(fine) else np.inf
        cuts[channel] = max(least, min(config.point_cut(rate), reached))
    return cuts


def check_bursts(
    residual: Array, known: Array, rows: Rows, config: GuardConfig, levels: Levels, learning: bool
) -> Array:
    """Grades `[T, C]` of stretches with large residuals: `log m > expected + cut`.

    `m` is the running median of residuals. What is expected, and the deviation of its logarithm,
    come from the lower quantiles at the same phase of the season; the cut is the normal tail at
    `false_rate`. The rise that related channels show at the same time is taken off.
    """
    season = max(levels.season, 1)
    phase = rows.number % season
    hot, level = np.full(residual.shape, -np.inf), np.zeros(residual.shape)
    shared = np.ones(residual.shape)
    if learning:
        levels.burst = np.zeros((len(config.burst_rows), 3, season, residual.shape[1]))
        levels.burst[:, 2] = np.inf
    for number, width in enumerate(config.burst_rows):
        rise, cut = np.zeros(residual.shape), np.full(residual.shape, np.inf)
        for channel in np.flatnonzero(levels.judged & ~levels.lone):
            at = np.flatnonzero(~known[:, channel])
            if len(at) < width:
                continue
            log = np.log(
                np.maximum(running_median(residual[at, channel], width), config.material / 10)
            )
            if learning:
                levels.burst[number, :, :, channel] = _burst_levels(
                    log, at, rows, season, width, config
                )
            expected, deviation, floor = levels.burst[number, :, phase[at], channel].T
            rise[at, channel], level[at, channel] = log - expected, np.exp(log)
            tail = np.sqrt(-2 * np.log(4 * config.false_rate * width))
            cut[at, channel] = np.maximum(deviation * tail, floor)
        others = shared_score(np.exp(rise), levels.related)
        shared = np.maximum(shared, others)
        excess = rise - np.log(others) - cut
        excess[level <= config.material * NORMAL_MEDIAN] = -np.inf
        hot = np.maximum(hot, excess)
    grades = np.zeros(residual.shape, np.uint8)
    for channel in np.flatnonzero((hot > 0).any(0)):
        at = np.flatnonzero(~known[:, channel])
        for first, last, grade in _burst_events(
            residual[at, channel], hot[at, channel], level[at, channel], config
        ):
            own = grades[at[first] : at[last] + 1, channel]
            own[:] = np.maximum(own, grade)
    grades[(grades == FAIL) & ((shared >= config.together) | levels.resting)] = SUSPECT
    return np.where(known, 0, grades)


def _burst_levels(
    log: Array, at: Array, rows: Rows, season: int, width: int, config: GuardConfig
) -> Array:
    """Expected value, deviation and smallest cut of a logarithm, by phase `[3, season]`."""
    probabilities = (0.1, config.most_broken, 0.55, 1 - config.most_broken)
    z10, z35, z55, _ = map(NORMAL, probabilities)
    phase_step = 24  # phases nearer than this share of the season count together
    cycle, total = rows.cycles(season)
    table = np.full((total, season), np.nan)
    table[cycle[at], (rows.number % season)[at]] = log
    turns = np.arange(-2, 3) * max(1, season // phase_step) if season > 1 else [0]
    near = np.concatenate([np.roll(table, int(turn), axis=1) for turn in turns])
    near = np.concatenate([np.full((1, season), np.median(log)), near])
    q10, q35, q55, q65 = column_quantiles(near, probabilities)
    deviation = np.maximum((q35 - q10) / (z35 - z10), (q55 - q35) / (z55 - z35))
    expected = q35 - z35 * deviation
    return np.stack([expected, deviation, q65 - expected + np.log(config.burst_least)])


def _burst_events(
    residual: Array, hot: Array, level: Array, config: GuardConfig
) -> list[tuple[int, int, int]]:
    """First and last position and grade of each burst among the known values `[T']`."""
    join = margin = config.burst_shortest
    first, stop = find_segments(hot > 0)
    gaps = np.flatnonzero(first[1:] - stop[:-1] <= join)
    events = []
    for i, j in zip(np.delete(first, gaps + 1), np.delete(stop, gaps), strict=True):
        low, high = max(0, i - margin), min(len(residual), j + margin)
        large = low + np.flatnonzero(residual[low:high] > np.median(level[i:j]) / 2)
        if j - i >= config.burst_shortest and len(large):
            sure = hot[i:j].max() > np.log(config.burst_fail)
            events.append((int(large[0]), int(large[-1]), FAIL if sure else SUSPECT))
    return events


# Check 5: the level


def check_shifts(
    scaled: Array, known: Array, rows: Rows, config: GuardConfig, levels: Levels, learning: bool
) -> Array:
    """Rows `[T, C]` between two sharp steps of opposite sign, after which the level is back.

    A step is sharp if it is `shift_step` times its local size and related channels make none. The
    level between the steps must leave that of both sides by `shift_least` deviations of what the
    level does over as many rows by itself.
    """
    steps = np.zeros(scaled.shape)
    for channel in np.flatnonzero(levels.judged):
        at = np.flatnonzero(~known[:, channel])
        own = np.abs(np.diff(scaled[at, channel]))
        if len(at) <= (config.fewest_values if learning else 2) or not own.any():
            continue
        if learning:
            levels.step[channel] = usual_size(own)
        local = running_median(own, config.local_rows) / NORMAL_MEDIAN
        local = np.maximum(local, levels.step[channel]) * np.sqrt(np.diff(at))
        inside = rows.first[at[1:]] == rows.first[at[:-1]]
        steps[at[1:], channel] = np.where(inside, own / local, 0.0)
    if learning:
        levels.step_related = related_channels(steps, known, config.together, config.related)
        levels.bump = _learn_bumps(scaled, known, levels.judged, config)
    score = steps / shared_score(steps, levels.step_related)
    shifted = np.zeros(scaled.shape, bool)
    for channel in np.flatnonzero(levels.judged):
        at = np.flatnonzero(~known[:, channel])
        values = scaled[at, channel]
        step = np.diff(values, prepend=values[:1])
        sharp = (score[at, channel] > config.shift_step) & (np.abs(step) > 1)
        own = np.zeros(len(scaled), bool)
        for first, stop in _pair_steps(values, step, sharp, levels.bump[:, channel], config):
            own[at[first] : at[stop - 1] + 1] = True
        if own.mean() < config.most_broken / 2:  # otherwise the channel has several levels
            shifted[:, channel] = own
    return shifted & ~known


def _pair_steps(
    values: Array, step: Array, sharp: Array, bump: Array, config: GuardConfig
) -> list[tuple[int, int]]:
    """Positions at which shifts begin and at which the level is back."""
    side, tried = config.local_rows, 8
    edges, pairs, k = np.flatnonzero(sharp), [], 0
    while k < len(edges):
        i, k = edges[k], k + 1
        for m in range(k, min(k + tried, len(edges))):
            j = edges[m]
            near = min(j - i, side)
            if near < config.shortest_run or j - i > config.shift_longest or step[i] * step[j] > 0:
                continue
            parts = values[max(0, i - near) : i], values[i:j], values[j : j + near]
            before, inside, after = (np.median(part) for part in parts)
            usual = bump[min(int(np.log2(j - i)), len(bump) - 1)] * config.shift_least
            least = max(min(abs(step[i]), abs(step[j])) / 2, 2 * abs(before - after), usual)
            lift = min(abs(inside - before), abs(inside - after))
            if lift > least and (inside > before) == (step[i] > 0):
                pairs.append((int(i), int(j)))
                k = m + 1
                break
    return pairs


def _learn_bumps(scaled: Array, known: Array, judged: Array, config: GuardConfig) -> Array:
    """Deviation of the mean of 2^k rows from the mean of as many rows on both sides, `[n, C]`."""
    overlap = 8
    lengths = 2 ** np.arange(int(np.log2(config.shift_longest)) + 1)
    bumps = np.full((len(lengths), scaled.shape[1]), np.inf)
    for channel in np.flatnonzero(judged):
        total = np.concatenate([[0], np.cumsum(scaled[~known[:, channel], channel])])
        for place, length in enumerate(lengths.tolist()):
            apart = max(1, length // overlap)
            means = (total[length:] - total[:-length])[::apart] / length
            k = length // apart
            if len(means) > 2 * k + overlap:
                bump = means[k:-k] - (means[: -2 * k] + means[2 * k :]) / 2
                bumps[place, channel] = np.median(np.abs(bump)) / NORMAL_MEDIAN
    return bumps
