"""What an experiment of the paper found: the one shape that every report is made from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from sacm.experiments.critical_difference import CriticalDifference
from sacm.experiments.grid_points import Key
from sacm.experiments.statistics import ConfidenceInterval, PairedComparison, Summary
from sacm.metrics.intervals import Record

State = Literal["done", "failed", "missing"]


@dataclass(frozen=True)
class EpochFinding(Record):
    """One epoch of one run; rates are None where windows have none of their own."""

    epoch: int
    train_loss: float
    validation: float
    rate_mean: float | None
    rate_std: float | None


@dataclass(frozen=True)
class RunFinding(Record):
    """One strategy in one group: what came out, or why nothing did.

    `run` names the run folder; `values` holds the metrics of the experiment that are defined;
    `made_with` says by which code, on how many threads; `chosen` is what "best_fixed" stands for.
    """

    strategy: str
    state: State
    reason: str | None = None
    run: str | None = None
    made_with: str | None = None
    chosen: str | None = None
    values: dict[str, float] | None = None
    epochs: int | None = None
    seconds: float | None = None
    history: tuple[EpochFinding, ...] = ()


@dataclass(frozen=True)
class Group(Record):
    """Runs that share everything but the strategy: a pair, or a few alternatives.

    `keys` says where in the grid: data, backbone, and what else the experiment varies.
    """

    keys: dict[str, Key]
    size: str
    runs: tuple[RunFinding, ...]


@dataclass(frozen=True)
class PaperValue(Record):
    """What the paper prints for one row: the baseline's value, the strategy's, and its gain.

    p_value: of its paired t-test over seeds; chosen: what its "best_fixed" stands for.
    """

    baseline: float | None
    value: float
    gain: float | None
    p_value: float | None = None
    chosen: str | None = None


@dataclass(frozen=True)
class FindingRow(Record):
    """One strategy in one metric, averaged over the n groups (of `expected`) with these keys.

    `expected` counts what the experiment declares, also where only a part was asked for. `gain` is
    in percent of the baseline, in percentage points for shares, None where there is no baseline;
    only groups where both have a value count. `p_value` is that of the paired t-test where a row
    averages over seeds alone, `adjusted_p_value` the same after Holm's correction over such rows of
    one metric. `groups` are places in `Findings.groups`.
    """

    keys: dict[str, Key]
    metric: str
    strategy: str
    n: int
    expected: int
    baseline: Summary | None
    value: Summary | None
    gain: float | None
    paper: PaperValue | None
    groups: tuple[int, ...]
    p_value: float | None = None
    adjusted_p_value: float | None = None


@dataclass(frozen=True)
class Overall(Record):
    """One strategy against the baseline in one metric, over all n groups.

    `gain` averages the groups' own gains, and `interval` is its bootstrap interval. The paper
    averages the gains of rows: `row_gain` and `paper_gain` do so with our numbers and with its own,
    over the `paper_rows` rows that both have. `adjusted_p_value` is the signed-rank test's,
    Holm-corrected over everything tested in this experiment.
    """

    metric: str
    strategy: str
    n: int
    gain: float | None
    interval: ConfidenceInterval | None
    comparison: PairedComparison | None
    adjusted_p_value: float | None
    row_gain: float | None
    paper_gain: float | None
    paper_rows: int


@dataclass(frozen=True)
class Coverage(Record):
    """How many of the runs that were asked for are done, failed, not run.

    declared: how many the whole grid of the experiment has.
    """

    total: int
    done: int
    failed: int
    missing: int
    declared: int


@dataclass(frozen=True)
class Findings(Record):
    """Everything a report shows.

    `settings` are those that every run had instead of the paper's, and the part of its horizons
    and seeds that was asked for; `row_keys` are the keys that
    rows differ in, `averaged` those that a row averages over; `notes` say what departs from the
    paper; `ranks` compares three or more strategies.
    """

    name: str
    title: str
    where: str
    task: str
    settings: dict[str, Key]
    baseline: str
    strategies: tuple[str, ...]
    metrics: tuple[str, ...]
    row_keys: tuple[str, ...]
    averaged: tuple[str, ...]
    notes: tuple[str, ...]
    coverage: Coverage
    rows: tuple[FindingRow, ...]
    overall: tuple[Overall, ...]
    groups: tuple[Group, ...]
    ranks: CriticalDifference | None


def without_curves(findings: Findings) -> Findings:
    """The same without what every epoch of every run was like: a small file."""
    groups = [
        replace(group, runs=tuple(replace(run, history=()) for run in group.runs))
        for group in findings.groups
    ]
    return replace(findings, groups=tuple(groups))
