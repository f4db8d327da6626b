"""Five checks of a table: value, run length, point, scale and level.

Each check compares values with the ordinary behaviour of their channel, described by quantiles that
normal values decide while at most a third of the rows is broken. A move that related channels or
the neighbours in time make as well is no fault: residuals are divided by theirs. Where large ones
are independent of each other, as faults are, the Gaussian model that repairs tables judges again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sacm.quality import predictor
from sacm.quality.config import FAIL, NORMAL, NORMAL_MEDIAN, SUSPECT, Fixed, GuardConfig, Kind
from sacm.quality.predictor import Array, Rows, find_segments, running_median
from sacm.quality.repair import RepairModel
from sacm.quality.rules import MAX_CHANGE, RANGE


class Levels:
    """Ordinary behaviour of the C channels, as the checks learn it; at first nothing is flagged."""

    def __init__(self, channels: int) -> None:
        no, zeros, never = np.zeros(channels, bool), np.zeros(channels), np.full(channels, np.inf)
        self.codes: list[list[float]] = [[] for _ in range(channels)]  # stand for a gap
        self.rests: list[list[float]] = [[] for _ in range(channels)]  # where it stays by nature
        self.run_limit = np.full(channels, Fixed.longest_counted + 1)  # rows that are stuck
        self.jump = zeros.copy()  # smallest step that is a jump
        self.season = 0  # rows
        # In deviations a value is (x - centre) / scale; asinh((x - centre) / bend) / scale if bent.
        self.centre, self.bend, self.scale = zeros.copy(), zeros.copy(), zeros + 1
        self.judged = no.copy()  # whether residuals are looked at
        self.resting = no.copy()  # whether it often stays at a value: its bursts may be real
        self.size, self.step = zeros + 1, zeros + 1  # of usual residuals and steps, in deviations
        self.lone = no.copy()  # whether large residuals are independent of each other
        self.one_sided = no.copy()  # whether common spikes go one way: they, and bursts, are real
        self.related = np.zeros((channels, channels), bool)  # which channels move together
        self.fail_cut, self.suspect_cut = never.copy(), never.copy()  # of residuals
        # [2, 3, season, C] for both widths: expected logarithm of sizes, deviation, smallest cut.
        self.burst = never[None, None, None]
        self.model: RepairModel | None = None  # predicts lone channels


def judge(
    values: Array, rows: Rows, config: GuardConfig, broken: Array, levels: Levels | None = None
) -> tuple[Levels, Array, Array]:
    """Levels, flags and grades of rows `[T, C]`; of values that break a rule nothing is learnt."""
    learning, levels = levels is None, levels or Levels(values.shape[1])
    parts = [(slice(None), rows)] if learning else [(at, rows.alone(at)) for at in rows.slices]
    every = [
        _Checks(values[at], part, config, broken[at], levels, learning).run() for at, part in parts
    ]
    flags, grades = (np.concatenate(arrays) for arrays in zip(*every, strict=True))
    return levels, flags, grades


@dataclass
class _Checks:
    """All checks of one table; learns what they need to know if `learning`."""

    values: Array
    rows: Rows
    config: GuardConfig
    excluded: Array
    levels: Levels
    learning: bool

    def run(self) -> tuple[Array, Array]:
        """The five checks in order; each leaves out what those before it flagged."""
        # Checks go through columns one by one: the values of a column lie together.
        self.values = np.asfortranarray(self.values, np.float64)
        self.beyond = np.isin(self.excluded, (RANGE, MAX_CHANGE)) & np.isfinite(self.values)
        self.excluded = np.asfortranarray(self.excluded > 0)
        self.flags, self.grades = (np.zeros_like(self.values, np.uint8) for _ in range(2))
        for channel in range(self.values.shape[1]):
            self.check_values(channel)
            self.check_runs(channel)
        self.grades[self.flags > 0] = FAIL
        if self.learning:
            self.learn_units()
        self.scaled = self.in_deviations()
        self.signed, self.score = np.zeros_like(self.values), np.zeros_like(self.values)
        self.state = np.array(-1)  # of values when residuals were computed last
        bursts, spikes = self.check_points_and_bursts()
        for flag, grades in ((Kind.SPIKE, spikes), (Kind.BURST, bursts)):
            self.flags[grades > 0] = flag
            self.grades = np.where(grades > 0, grades, self.grades)
        shifted = self.check_shifts()
        self.flags[shifted], self.grades[shifted] = Kind.SHIFT, SUSPECT
        real = np.isin(self.flags, (Kind.SPIKE, Kind.BURST)) & self.levels.one_sided
        self.flags[real] = self.grades[real] = 0
        return self.flags, self.grades

    @property
    def known(self) -> Array:
        """Values `[T, C]` that are flagged already or known to be broken."""
        return (self.flags > 0) | self.excluded

    def check_values(self, channel: int) -> None:
        """Flag values that are missing or a gap code: `x is NaN or x in codes`."""
        column, flags = self.values[:, channel], self.flags[:, channel]
        if self.learning:
            self.levels.codes[channel] = self.find_codes(column[~self.excluded[:, channel]])
        flags[~np.isfinite(column)] = Kind.MISSING
        flags[np.isin(column, self.levels.codes[channel])] = Kind.CODE

    def find_codes(self, column: Array) -> list[float]:
        """Values that stand for a gap: extremes that recur, beyond the span of all other values."""
        values, counts = np.unique(column[np.isfinite(column)], return_counts=True)
        codes: list[float] = []
        while len(values) >= self.config.fewest_levels:
            far = 2 * np.diff(values)[[0, -1]] > values[-1] - values[0]
            ends = np.array([0, -1])[far & (counts[[0, -1]] >= self.config.code_count)]
            if not len(ends):
                break
            codes.append(float(values[ends[0]]))
            values, counts = np.delete(values, ends[0]), np.delete(counts, ends[0])
        return codes

    def check_runs(self, channel: int) -> None:
        """Flag runs of equal values that are too long: `length >= run_limit`.

        A long run is stuck if it ends in a jump, or is `long_run` times as long as the limit. A
        value with several long runs is a gap code, unless the channel rests there by nature.
        """
        config, levels, flags = self.config, self.levels, self.flags[:, channel]
        at = np.flatnonzero((flags == 0) & ~self.excluded[:, channel])
        values = self.values[at, channel]
        state = self.learning and len(np.unique(values)) < config.fewest_levels
        if state or len(values) < config.shortest:  # a state or a constant may stay for ever
            return
        change = (values[1:] != values[:-1]) | (np.diff(self.rows.first[at]) > 0)
        first = np.flatnonzero(np.concatenate([[True], change]))
        length, level = np.diff(first, append=len(values)), values[first]
        steps = np.abs(np.diff(level))
        if self.learning and len(steps):
            levels.run_limit[channel] = self.run_limit(length)
            levels.jump[channel] = predictor.quantiles(steps, [config.jump])[0]
        limit = levels.run_limit[channel]
        jumps = np.concatenate([[False], steps > levels.jump[channel], [False]])
        if self.learning:
            self.learn_rests(channel, length, level, (jumps[:-1] + 0 + jumps[1:]) / 2)
        long = length >= limit
        coded = long & np.isin(level, levels.codes[channel])
        ends = jumps[1:] | (length > config.long_run * limit)
        stuck = long & ends & ~np.isin(level, levels.rests[channel])
        flags[at] = np.repeat(np.select([coded, stuck], [Kind.CODE, Kind.STUCK]), length)

    def run_limit(self, length: Array) -> int:
        """Shortest run that a geometric tail allows less than `false_rate` times a row.

        The chance to go on is that of runs which fill too many rows to be faults.
        """
        config, rows = self.config, length.sum()
        capped = np.minimum(length, Fixed.longest_counted)
        runs, filled = (
            np.bincount(capped, weights, Fixed.longest_counted + 2)[::-1].cumsum()[::-1]
            for weights in (None, length)  # runs of k rows and more, and the rows that they fill
        )
        last = max(1, int(np.flatnonzero(filled > config.most_broken * rows)[-1]))
        rate = config.suspect_rate
        go_on = np.clip(runs[last + 1] / max(runs[last], 1), rate, 1 - rate)
        more = np.log(config.false_rate * rows / max(runs[last], 1)) / np.log(go_on)
        return min(max(config.shortest, last + int(np.ceil(max(0, more)))), Fixed.longest_counted)

    def learn_rests(self, channel: int, length: Array, level: Array, edges: Array) -> None:
        """Values with several long runs: gap codes, or values at which the channel rests."""
        config, levels = self.config, self.levels
        short = length < levels.run_limit[channel]
        ties = (length - 1)[short].sum() > config.tied * length[short].sum()
        for value, count in zip(*np.unique(level[~short], return_counts=True), strict=True):
            if count >= config.code_count:
                brief = np.sum((level == value) & short & (length > 1))
                jumps = edges[~short & (level == value)].mean() > config.jump
                code = brief < count / 2 and (jumps or not ties)
                (levels.codes if code else levels.rests)[channel].append(float(value))

    def learn_units(self) -> None:
        """Centre, scale and skewness of channels, whether they are judged, and the season."""
        config, levels, tail = self.config, self.levels, Fixed.tail
        for channel in range(self.values.shape[1]):
            column = self.values[~self.known[:, channel], channel]
            moving = (np.diff(column) != 0).mean() if len(column) > 1 else 0.0
            if len(column) < config.fewest_values or moving < config.moving:
                continue
            levels.resting[channel] = moving < config.restless
            low, middle, high = predictor.quantiles(column, (tail, 1 / 2, 1 - tail))
            narrow, wide = sorted((middle - low, high - middle))
            bend = narrow if 0 < config.skewed * narrow < wide else 0.0
            moved = np.arcsinh((column - middle) / bend) if bend else column - middle
            levels.centre[channel], levels.bend[channel] = middle, bend
            levels.scale[channel] = predictor.robust_scale(moved[:, None])[0]
            levels.judged[channel] = True
        part = self.rows.longest
        scaled = predictor.interpolate(self.in_deviations()[part], self.known[part])
        levels.season = predictor.find_season(scaled)

    def in_deviations(self) -> Array:
        """Values `[T, C]` in deviations; 0 where a channel is not judged or a value is missing."""
        levels = self.levels
        moved = np.where(np.isfinite(self.values), self.values, levels.centre) - levels.centre
        bent = levels.bend > 0
        moved[:, bent] = np.arcsinh(moved[:, bent] / levels.bend[bent])
        return np.where(levels.judged, moved / levels.scale, 0.0)

    def check_points_and_bursts(self) -> tuple[Array, Array]:
        """Grades `[T, C]` of bursts and of spikes.

        A point is flagged if `residual / (local size * shared) > cut`; `shared` is what related
        channels or the neighbours' own residuals show at the time (1 where large residuals are
        independent). Residuals are computed again without what was flagged, until nothing is new.
        """
        config, levels = self.config, self.levels
        known, wild = self.known, np.zeros_like(self.values, bool)
        burst, spike = (np.zeros_like(self.values, np.uint8) for _ in range(2))
        first_cut = config.point_cut(config.false_rate)
        for turn in range(config.rounds + 1):
            lone = bool(levels.lone.any()) if self.learning else levels.model is not None
            by_model = turn >= config.rounds - 1 and lone
            before = self.state
            signed, score = self.residuals(known, wild, by_model)
            settled = turn > 1 and not lone and np.array_equal(before, self.state)
            last = settled or turn == config.rounds - (not by_model)  # the model predicts twice
            residual = np.abs(signed)
            if self.learning:
                independent = self.independent(residual / levels.size, known)
                levels.lone = independent | (levels.lone & by_model)
                levels.related = predictor.related_channels(score, known, config)
            shared = predictor.shared_score(score, levels.related)
            nearby = np.maximum(shared, predictor.nearby_score(score))
            divided = np.where(levels.lone, score, score / nearby)
            if self.learning and turn:
                self.learn_cuts(divided, known)
            material = (residual > config.material) & ~known
            wild = (divided > (levels.fail_cut if turn else first_cut)) & material
            if last:
                common = levels.fail_cut < first_cut * (1 - config.wrong_share)
                if self.learning:  # spikes that go one way are promotions, rain or beats
                    count, above = wild.sum(0), (wild & (signed > 0)).sum(0)
                    most = np.maximum(above, count - above) - np.sqrt(count)
                    levels.one_sided = (common | levels.lone) & (most > config.one_sided * count)
                far = (common | (residual > config.spike_fail)) & ~levels.resting
                spike[(divided > levels.suspect_cut) & material] = SUSPECT
                spike[wild & (levels.lone | far) & (shared < config.together)] = FAIL
            if (turn == 1 or last) and not settled:
                found = self.check_bursts(residual, known)
                burst = np.maximum(burst, found)
                known, wild = known | (found > 0), wild & (found == 0)
            if last:
                break
        return burst, spike

    def residuals(self, known: Array, wild: Array, by_model: bool) -> tuple[Array, Array]:
        """Signed residuals `[T, C]` in deviations, and their size over the local one."""
        config, levels, kept = self.config, self.levels, ~(known | wild)
        signed, score, before = self.signed, self.score, self.state
        self.state = known * np.int8(2) + wild
        enough = kept.sum(0) >= (config.fewest_values // 2 if self.learning else 2)
        if self.learning:
            levels.judged &= enough
        modelled = levels.lone & levels.judged & by_model
        # Where nothing was flagged since the last call, residuals are the same.
        anew = (self.state != before).any(0) | modelled
        signed[:, anew] = score[:, anew] = 0.0
        if by_model:
            seen = np.where(known, np.nan, self.scaled)
            if self.learning:
                levels.model = RepairModel.learn(seen, wild, self.rows, levels.season, errors=False)
            assert levels.model is not None
            left_out = levels.model.residuals(seen, wild, self.rows)
        for channel in np.flatnonzero(levels.judged & enough & anew):
            good, column = kept[:, channel], self.scaled[:, channel]
            if modelled[channel]:
                column = left_out[:, channel]
            else:
                column = predictor.neighbour_residual(column, good, self.rows)
            signed[:, channel] = np.where(known[:, channel], 0.0, column)
            at, size = np.flatnonzero(good), np.abs(signed[:, channel])
            if self.learning:
                levels.size[channel] = predictor.usual_size(size[at], config.moving)
            local = running_median(size[at], config.local_rows) / NORMAL_MEDIAN
            local = np.interp(np.arange(len(size)), at, local)
            score[:, channel] = size / np.maximum(local, levels.size[channel])
        return signed, score

    def independent(self, sizes: Array, known: Array) -> Array:
        """Channels `[C]` whose large residuals follow each other by chance only, at short lags."""
        config, wild, pairs, both = self.config, sizes > self.config.together, 0, 0
        for lag in range(1, config.shortest + 1):
            pairs = pairs + (wild[lag:] & wild[:-lag]).sum(0)
            both = both + (~known[lag:] & ~known[:-lag]).sum(0)
        share = wild.sum(0) / np.maximum((~known).sum(0), 1)
        expected = share**2 * both
        chance = (pairs < config.independent * expected) & (config.independent * pairs > expected)
        return (share > Fixed.largest_rate) & (expected > config.fewest_values) & chance

    def learn_cuts(self, scores: Array, known: Array) -> None:
        """The smallest scores `[C]` at which false flags stay within their budget.

        Expected false flags are `2^(-s / 0.6745)` of the values. They may be `false_rate` of all
        values, or a share of the flagged ones where more are flagged (Benjamini and Hochberg).
        """
        config, levels, least = self.config, self.levels, Fixed.least_cut
        wrong = np.where(levels.lone, config.lone_wrong_share, config.wrong_share)
        for channel in range(scores.shape[1]):
            ordered = -np.sort(-scores[~known[:, channel], channel])
            expected = np.exp2(-ordered / NORMAL_MEDIAN)
            share = wrong[channel] * np.arange(1, len(ordered) + 1) / len(ordered)
            rates = (levels.fail_cut, config.false_rate), (levels.suspect_cut, config.suspect_rate)
            for cuts, rate in rates:
                fine = np.flatnonzero(expected <= np.maximum(rate, share))
                reached = np.nextafter(ordered[fine[-1]], 0) if len(fine) else np.inf
                cuts[channel] = max(least, min(config.point_cut(rate), reached))

    def check_bursts(self, residual: Array, known: Array) -> Array:
        """Grades `[T, C]` of stretches with large residuals: `log m > expected + cut`.

        `m` is the running median of residuals. What is expected, and the deviation of its
        logarithm, come from the lower quantiles at the same phase of the season; the cut is the
        normal tail at `false_rate`. The rise that related channels show at the same time is off.
        """
        config, levels = self.config, self.levels
        known = known & ~self.beyond
        residual = np.where(self.beyond, residual.max(0), residual)
        season = max(levels.season, 1)
        phase = self.rows.number % season
        cycle = np.cumsum(np.diff(phase, prepend=-1) <= 0)
        every = max(1, self.rows.count // (2 * Fixed.fit_rows))  # cycles that count
        place = np.where(cycle % every == 0, cycle // every * season + phase, -1)
        hot, level, shared = np.full_like(residual, -np.inf), np.zeros_like(residual), np.zeros(1)
        if self.learning:
            levels.burst = np.full((len(config.burst_rows), 3, season, known.shape[1]), np.inf)
        for number, width in enumerate(config.burst_rows):
            tail = np.sqrt(-2 * np.log(4 * config.false_rate * width))
            rise, excess = np.zeros_like(residual), np.full_like(residual, -np.inf)
            for channel in np.flatnonzero(levels.judged & ~levels.lone):
                at = np.flatnonzero(~known[:, channel])
                if len(at) < width:
                    continue
                median = running_median(residual[at, channel], width)
                median = np.maximum(median, config.material * config.wrong_share)
                log, usual = np.log(median), levels.burst[number, :, :, channel]
                if self.learning:
                    usual[:] = self.burst_levels(log, place[at], season)
                expected, deviation, floor = usual[:, phase[at]]
                rise[at, channel], level[at, channel] = log - expected, median
                over = log - expected - np.maximum(deviation * tail, floor)
                material = median > config.material * NORMAL_MEDIAN
                excess[at, channel] = np.where(material, over, -np.inf)
            others = predictor.shared_score(rise, levels.related, least=0.0)
            excess -= others
            shared, hot = np.maximum(shared, others), np.maximum(hot, excess)
        grades = np.zeros_like(residual, np.uint8)
        for channel in np.flatnonzero((hot > 0).any(0)):
            at = np.flatnonzero(~known[:, channel])
            parts = (array[at, channel] for array in (residual, hot, level))
            grades[at, channel] = self.grade_bursts(*parts)
        shared = shared >= np.log(config.together)
        grades[(grades == FAIL) & (shared | levels.resting)] = SUSPECT
        return np.where(known | self.beyond, 0, grades)

    def burst_levels(self, log: Array, place: Array, season: int) -> Array:
        """Expected value, deviation and smallest cut of a logarithm, by phase `[3, season]`.

        `place` is the position of each value in a table of cycles by phases, -1 for none.
        """
        (low, high), middle = Fixed.burst_quantiles, self.config.most_broken
        probabilities = low, middle, high, 1 - middle
        z10, z35, z55, _ = map(NORMAL, probabilities)
        kept, cycles = place >= 0, place.max() // season + 1
        table = np.full((cycles, season), np.nan)
        table.ravel()[place[kept]] = log[kept]
        apart = max(1, season // Fixed.season_parts)
        turns = range(-2 * apart, 3 * apart, apart) if season > 1 else [0]
        near = [np.roll(table, turn, axis=1) for turn in turns]
        some = log[:: max(1, len(log) // Fixed.fit_rows)]
        near.append(np.full((1, season), np.median(some)))  # so that every phase has a value
        q10, q35, q55, q65 = predictor.quantiles(np.concatenate(near), probabilities)
        deviation = np.maximum((q35 - q10) / (z35 - z10), (q55 - q35) / (z55 - z35))
        expected = q35 - z35 * deviation
        return np.stack([expected, deviation, q65 - expected + np.log(self.config.burst_least)])

    def grade_bursts(self, residual: Array, hot: Array, level: Array) -> Array:
        """Grades of bursts among the normal values `[T']` of a channel."""
        margin, grades = self.config.shortest, np.zeros(len(hot), np.uint8)
        first, stop = find_segments(hot > 0)
        gaps = np.flatnonzero(first[1:] - stop[:-1] <= margin)  # near bursts are one
        for i, j in zip(np.delete(first, gaps + 1), np.delete(stop, gaps), strict=True):
            low, high = max(0, i - margin), min(len(residual), j + margin)
            large = low + np.flatnonzero(residual[low:high] > np.median(level[i:j]) / 2)
            if j - i >= margin and len(large):
                sure = hot[i:j].max() > np.log(self.config.burst_fail)
                burst = grades[large[0] : large[-1] + 1]
                burst[:] = np.maximum(burst, FAIL if sure else SUSPECT)
        return grades

    def check_shifts(self) -> Array:
        """Rows `[T, C]` between two sharp steps of opposite sign, after which the level is back.

        A step is sharp if it is `shift_step` times its local size and related channels make none.
        The level between the steps must leave that of both sides by `shift_least` deviations.
        """
        config, levels, known = self.config, self.levels, self.known
        steps = np.zeros_like(self.values)
        for channel in np.flatnonzero(levels.judged):
            at = np.flatnonzero(~known[:, channel])
            size = np.abs(np.diff(self.scaled[at, channel]))
            if len(at) <= (config.fewest_values if self.learning else 2) or not size.any():
                continue
            if self.learning:
                levels.step[channel] = predictor.usual_size(size)
            local = running_median(size, config.local_rows) / NORMAL_MEDIAN
            local = np.maximum(local, levels.step[channel]) * np.sqrt(np.diff(at))
            same = np.diff(self.rows.first[at]) == 0
            steps[at[1:], channel] = np.where(same, size / local, 0.0)
        score = steps / predictor.shared_score(steps, levels.related)
        shifted = np.zeros_like(known)
        for channel in np.flatnonzero((score > config.shift_step).any(0)):
            at = np.flatnonzero(~known[:, channel])
            for first, stop in self.pair_steps(self.scaled[at, channel], score[at, channel]):
                shifted[at[first:stop], channel] = True
        return shifted

    def pair_steps(self, values: Array, score: Array) -> list[tuple[int, int]]:
        """Positions at which shifts begin and at which the level is back."""
        config, step, pairs = self.config, np.diff(values, prepend=values[:1]), [(0, -1)]
        edges = np.flatnonzero((score > config.shift_step) & (np.abs(step) > 1)).tolist()
        some = Fixed.tried_ends + 1
        for i, j in [(i, j) for k, i in enumerate(edges) for j in edges[k + 1 : k + some]]:
            near = min(j - i, config.local_rows)
            wrong = near < config.shortest or j - i > config.shift_longest
            if i <= pairs[-1][1] or wrong or step[i] * step[j] > 0:
                continue
            parts = values[max(0, i - near) : i], values[i:j], values[j : j + near]
            before, inside, after = (np.median(part) for part in parts)
            least = max(min(abs(step[i]), abs(step[j])) / 2, 2 * abs(before - after))
            lift = min(abs(inside - before), abs(inside - after))
            if lift > max(least, config.shift_least) and (inside > before) == (step[i] > 0):
                pairs.append((i, j))
        return pairs[1:]
