"""Every threshold of the guard, in one place and in units that an engineer knows."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import log2
from statistics import NormalDist
from typing import Any

from sacm.errors import ArgumentError

KINDS = ("normal", "missing", "code", "stuck", "spike", "burst", "shift", "rule")
"""Names of the flags; a flag is a position here."""
GRADES = ("normal", "suspect", "fail")
SUSPECT, FAIL = 1, 2
"""Grades: suspect values are unusual and may be real; fail values are repaired."""
REPAIRS = ("fail", "all", "none")
"""What `repair=` takes: which grades are replaced by their repair."""
VALUES = 1e4
"""`false_events` counts events in this many values."""
LARGEST_RATE = VALUES**-0.5
"""The largest chance of a false event that can be asked for; faults beyond it are common."""
NORMAL = NormalDist().inv_cdf
"""Quantiles of a standard normal variable."""
NORMAL_MEDIAN = NORMAL(0.75)
"""Median of its absolute value."""
SMALL = 1e-6
"""What keeps solutions finite, and the share of an error at which they are good enough."""


class Kind:
    """The flags by name."""

    MISSING, CODE, STUCK, SPIKE, BURST, SHIFT, RULE = range(1, len(KINDS))


@dataclass(frozen=True)
class GuardConfig:
    """Thresholds of the checks.

    A deviation is the robust standard deviation of a channel; a residual is the distance of a value
    from what its neighbours in time predict, in units of its usual size.

    Attributes:
        false_events: Expected false fail events in 10,000 normal values; every cut follows from it.
        suspect_factor: Suspect events may be this many times as frequent as fail events.
        wrong_share: Share of flagged values that may be false where faults are common.
        lone_wrong_share: The same where faults are independent of each other.
        material: Smallest residual worth flagging, in deviations.
        spike_fail: Smallest residual of a rare spike that is a fail, in deviations; where spikes
            are common every one beyond the cut is.
        one_sided: Common spikes of a channel are real if this share of them goes one way.
        most_broken: Largest share of a channel's rows that may be broken.
        fewest_values: Measured values from which on a channel is judged.
        fewest_levels: Different values from which on a channel is a measurement and not a state.
        moving: Share of steps with a change from which on residuals of a channel are judged.
        restless: Share of steps with a change from which on a spike or burst can be a fail.
        skewed: A channel is judged on a logarithmic scale if one side of its median is this many
            times as wide as the other.
        code_count: Times that a value must recur to be a gap code.
        shortest: Rows of the shortest stuck run, burst or shift.
        long_run: A run this many times the limit is stuck even if it ends without a jump.
        jump: Quantile of a channel's steps from which on a step is a jump.
        tied: Share of equal steps in normal rows from which on rest is normal for a channel.
        rounds: Times that residuals are computed again without what was flagged.
        local_rows: Rows of the running median that follows the size of residuals.
        related: Share of large residuals that must coincide beyond chance in related channels.
        together: Size of related channels' residuals from which on a move is shared by them.
        independent: Large residuals are independent of each other if they follow each other at
            most this many times as often as by chance.
        burst_rows: Rows of the two running medians of residuals.
        burst_least: Smallest rise of the residuals' size in a burst, as a factor.
        burst_fail: Factor beyond its cut from which on a burst is a fail, not suspect.
        shift_step: Smallest step at both ends of a shift, in typical steps.
        shift_least: Smallest shift, in deviations.
        shift_longest: Rows of the longest shift.
        suspect_weight: Weight of a suspect value in training.
        online_range: Room beyond the training range before a new value is impossible, in widths of
            that range.
        online_suspect: Residuals of the window model from which on a value is suspect, in those
            that normal training windows exceed with the chance of a false event.
        online_fail: The same for a fail.
    """

    false_events: float = 1.0
    suspect_factor: float = 10.0
    wrong_share: float = 0.1
    lone_wrong_share: float = 0.3
    material: float = 0.25
    spike_fail: float = 3.0
    one_sided: float = 0.75
    most_broken: float = 0.35
    fewest_values: int = 100
    fewest_levels: int = 5
    moving: float = 0.3
    restless: float = 0.6
    skewed: float = 3.0
    code_count: int = 3
    shortest: int = 5
    long_run: float = 4.0
    jump: float = 0.7
    tied: float = 0.1
    rounds: int = 4
    local_rows: int = 31
    related: float = 0.2
    together: float = 4.0
    independent: float = 1.3
    burst_rows: tuple[int, int] = (25, 9)
    burst_least: float = 2.5
    burst_fail: float = 1.5
    shift_step: float = 12.0
    shift_least: float = 1.5
    shift_longest: int = 2000
    suspect_weight: float = 0.5
    online_range: float = 1.0
    online_suspect: float = 1.2
    online_fail: float = 1.5

    def __post_init__(self) -> None:
        for field in fields(self):
            value: Any = getattr(self, field.name)
            for number in value if isinstance(value, tuple | list) else (value,):
                plain = isinstance(number, int | float) and not isinstance(number, bool)
                if not plain or not 0 < number < float("inf"):
                    raise ArgumentError(f"{field.name} must be a positive number, got {value!r}.")
        object.__setattr__(self, "burst_rows", tuple(self.burst_rows))

    @property
    def false_rate(self) -> float:
        """Chance of a false fail event, a value."""
        return min(self.false_events / VALUES, LARGEST_RATE)

    @property
    def suspect_rate(self) -> float:
        """Chance of a false suspect event, a value."""
        return min(self.suspect_factor * self.false_rate, LARGEST_RATE)

    def point_cut(self, rate: float) -> float:
        """Residual that a value exceeds with the chance `rate`.

        Residuals of normal rows have about a double exponential distribution: `2^(-s / 0.6745)`.
        """
        return NORMAL_MEDIAN * log2(1 / rate)


class Models:
    """Settings of the Gaussian models of tables and of windows; no argument changes them."""

    most_related = 12  # channels in the prediction of one
    least_correlation = 0.1  # of steps or levels, from which on a channel is related
    penalty = 0.02  # of related channels in a ridge regression, relative to their variance
    season_least = 0.02  # share of a channel's variance that must repeat to use its season
    largest_carry = 0.99  # correlation of neighbouring rows
    fit_rows = 10_000  # that a model of tables is fitted on, at most
    steps = 60  # of conjugate gradients
    coverage = 0.9  # share of hidden values that the interval of a repair holds
    hidden_share = 0.1  # of the good values, to measure uncertainty
    directions = 64  # of the model of windows
    entry_weight = 0.2  # share of an observation that an entry counts, as neighbours are alike
    fewest_windows = 8  # end to end, that a model of windows needs
    most_doubted = 0.5  # share of a window, or of its channels, above which nothing is a fail
    batch = 256  # windows that are judged together
    most_windows = 5_000  # that a model of windows is learnt from
    most_entries = 20_000_000  # values that it is learnt from
