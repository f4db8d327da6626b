"""Every threshold of the guard, in one place and in units that an engineer knows."""

from __future__ import annotations

from dataclasses import dataclass
from math import log2
from statistics import NormalDist

from sacm.errors import ArgumentError

# Names of the flags; a flag is a position here.
KINDS = ("normal", "missing", "code", "stuck", "spike", "burst", "shift", "rule")
GRADES = ("normal", "suspect", "fail")
SUSPECT, FAIL = 1, 2  # suspect values are unusual and may be real; fail values are repaired
REPAIRS = {"fail": FAIL, "all": SUSPECT, "none": FAIL + 1}  # the lowest grade that is repaired
VALUES = 1e4  # `false_events` counts events in this many values
NORMAL = NormalDist().inv_cdf  # quantiles of a standard normal variable
NORMAL_MEDIAN = NORMAL(0.75)  # median of its absolute value
SMALL = 1e-6  # keeps solutions finite, and is the share of an error at which they are good enough


class Kind:
    """The flags by name."""

    MISSING, CODE, STUCK, SPIKE, BURST, SHIFT, RULE = range(1, len(KINDS))


@dataclass(frozen=True)
class GuardConfig:
    """Thresholds of the checks; each field is explained beside it.

    A deviation is the robust standard deviation of a channel; a residual is the distance of a value
    from what its neighbours in time predict, in units of its usual size.
    """

    false_events: float = 1.0  # Expected false fail events in 10,000 normal values; sets all cuts.
    suspect_factor: float = 10.0  # How many times as frequent suspect events may be.
    wrong_share: float = 0.1  # Share of flagged values that may be false where faults are common.
    lone_wrong_share: float = 0.3  # The same where faults are independent of each other.
    material: float = 0.25  # Smallest residual worth flagging, in deviations.
    spike_fail: float = 3.0  # Smallest residual of a rare spike that is a fail, in deviations.
    one_sided: float = 0.75  # Where this share of common spikes goes one way, all are real.
    most_broken: float = 0.35  # Largest share of a channel's rows that may be broken.
    fewest_values: int = 100  # Measured values from which on a channel is judged.
    fewest_levels: int = 5  # Different values from which on a channel is not a state.
    moving: float = 0.3  # Share of steps with a change from which on residuals are judged.
    restless: float = 0.6  # The same, from which on a spike or burst can be a fail.
    skewed: float = 3.0  # Ratio of the sides of the median that asks for a logarithmic scale.
    code_count: int = 3  # Times that a value must recur to be a gap code.
    shortest: int = 5  # Rows of the shortest stuck run, burst or shift.
    long_run: float = 4.0  # A run this many times the limit is stuck even without a jump after it.
    jump: float = 0.7  # Quantile of a channel's steps from which on a step is a jump.
    tied: float = 0.1  # Share of equal steps from which on rest is normal for a channel.
    rounds: int = 4  # Times that residuals are computed again without what was flagged.
    local_rows: int = 31  # Rows of the running median that follows the size of residuals.
    related: float = 0.2  # Share of large residuals that coincide in related channels.
    together: float = 4.0  # Size of related channels' residuals that makes a move a shared one.
    independent: float = 1.3  # Largest ratio to chance at which residuals are independent.
    burst_rows: tuple[int, int] = (25, 9)  # Rows of the two running medians of residuals.
    burst_least: float = 2.5  # Smallest rise of the residuals' size in a burst, as a factor.
    burst_fail: float = 1.5  # Factor beyond its cut from which on a burst is a fail.
    shift_step: float = 12.0  # Smallest step at both ends of a shift, in typical steps.
    shift_least: float = 1.5  # Smallest shift, in deviations.
    shift_longest: int = 2000  # Rows of the longest shift.
    suspect_weight: float = 0.5  # Weight of a suspect value in training.
    online_range: float = 1.0  # Room of new values beyond the training range, in its widths.
    online_suspect: float = 1.2  # Cut of suspect window residuals, in the largest normal ones.
    online_fail: float = 1.5  # The same for a fail.

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            for number in value if isinstance(value, tuple | list) else (value,):
                plain = isinstance(number, int | float) and not isinstance(number, bool)
                if not plain or not 0 < number < float("inf"):
                    raise ArgumentError(f"{name} must be a positive number, got {value!r}.")
        object.__setattr__(self, "burst_rows", tuple(self.burst_rows))

    @property
    def false_rate(self) -> float:
        """Chance of a false fail event, a value."""
        return min(self.false_events / VALUES, Fixed.largest_rate)

    @property
    def suspect_rate(self) -> float:
        """Chance of a false suspect event, a value."""
        return min(self.suspect_factor * self.false_rate, Fixed.largest_rate)

    def point_cut(self, rate: float) -> float:
        """Residual that a normal value exceeds with the chance `rate = 2^(-s / 0.6745)`."""
        return NORMAL_MEDIAN * log2(1 / rate)


class Fixed:
    """Settings that no argument changes, most of them of the models of tables and of windows."""

    largest_rate = 0.01  # Largest share of false events; faults beyond it are common.
    longest_counted = 999  # Rows; longer runs are counted as this long.
    tail = 0.02  # Share at each end of the values that tells whether a channel is skewed.
    least_cut = 3.0  # Smallest cut of residuals, however many faults there are.
    burst_quantiles = (0.1, 0.55)  # Of sizes; with `most_broken` they tell what is expected.
    season_parts = 24  # Phases nearer than one part of the season count together.
    tried_ends = 8  # Steps that may end a shift.
    central = 0.7  # Share of the values that a deviation is computed from.
    clip = 3.0  # Deviations at which values are cut before a season is looked for.
    slow_rows = 2000  # Rows of the moving mean that is taken off before.
    shortest_season = 4  # Rows; as many peaks are tried, and twice as many cycles are needed.
    season_channels = 20  # Channels that a season is looked for in.
    near_best = 0.75  # Share of the best season's fit from which on a shorter one is taken.
    season_least = 0.02  # Share of a channel's variance that must repeat to use its season.
    most_related = 12  # Channels in the prediction of one.
    least_correlation = 0.1  # Correlation of steps from which on a channel is related.
    penalty = 0.02  # Ridge penalty of related channels, relative to their variance.
    lags = 5  # Means of the past that a value depends on, each over twice as many rows.
    distances = 7  # Doublings of the distance from good values, each with its own uncertainty.
    fit_rows = 10_000  # Most rows that a model of tables is fitted on.
    coverage = 0.9  # Share of hidden values that the interval of a repair holds.
    hidden_share = 0.1  # Share of the good values hidden to measure uncertainty.
    shortest_window = 5  # Rows.
    grain = 1e-5  # Relative distance up to which values of a window are the same.
    directions = 64  # Factors of the model of windows.
    steps = 30  # Most iterations of conjugate gradients.
    entry_weight = 0.2  # Share of an observation that an entry counts, as neighbours are alike.
    fewest_windows = 8  # Windows, end to end, that their model needs.
    most_doubted = 0.5  # Share of a window, or of its channels, above which nothing is a fail.
    batch = 256  # Windows that are judged together.
    most_windows = 5_000  # Most windows that their model is learnt from.
    most_entries = 20_000_000  # Most values that it is learnt from.
