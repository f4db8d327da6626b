"""Rows and totals of groups with chosen numbers, calculated a second time by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from scipy import stats

from sacm.errors import DataError, SACMError
from sacm.experiments.grid_points import Selection
from sacm.experiments.named.experiment import BEST_FIXED, Experiment, points
from sacm.experiments.named.findings import Findings, Group, RunFinding
from sacm.experiments.named.pairs import metric_gain
from sacm.experiments.named.tabulate import read_findings, tabulate

MISSING = RunFinding("sacm", "missing")
REAL = Experiment(
    name="real_forecasting",
    title="Forecasting",
    where="a table",
    task="forecasting",
    datasets=("ILI", "ETTh1"),
    backbones=("PatchTST",),
    metrics=("mse", "mae"),
    notes=("one seed",),
)


def group(data: str, horizon: int, **values: float | None) -> Group:
    runs = tuple(
        RunFinding(name, "done", run=name, values={"mse": value, "mae": value / 2})
        if value is not None
        else RunFinding(name, "failed", "the loss is nan.")
        for name, value in values.items()
    )
    return Group(
        {"data": data, "backbone": "PatchTST", "horizon": horizon, "seed": 1}, "small", runs
    )


def rows(findings: Findings, metric: str = "mse", strategy: str = "sacm") -> list:
    return [row for row in findings.rows if (row.metric, row.strategy) == (metric, strategy)]


def test_a_row_averages_the_groups_where_both_have_a_value():
    groups = [
        group("ILI", 24, raw=4.0, sacm=3.0),
        group("ILI", 36, raw=2.0, sacm=2.5),
        group("ILI", 48, raw=1.0, sacm=None),
        group("ETTh1", 96, raw=0.5, sacm=0.4),
    ]
    findings = tabulate(REAL, groups, notes=["Epochs 2 for every run."])
    ili, ett = rows(findings)
    assert (ili.keys, ili.n, ili.expected, ili.groups) == (
        {"data": "ILI", "backbone": "PatchTST"},
        2,
        3,
        (0, 1, 2),
    )
    assert (ili.baseline.mean, ili.value.mean) == (3.0, 2.75)
    assert ili.gain == pytest.approx(100 * 0.25 / 3)
    assert (ett.n, ett.expected, ett.baseline.mean) == (1, 1, 0.5)
    # The paper's numbers for PatchTST: ILI 3.321 and 2.942, ETTh1 0.459 and 0.446.
    assert (ett.paper.baseline, ett.paper.value) == (0.459, 0.446)
    assert vars(findings.coverage) == {
        "total": 8,
        "done": 7,
        "failed": 1,
        "missing": 0,
        "declared": len(points(REAL, Selection())) * 2,
    }
    assert findings.averaged == ("horizon", "seed")
    assert findings.notes == ("one seed", "Epochs 2 for every run.")


def test_a_row_without_runs_still_has_the_papers_number():
    runs = (RunFinding("raw", "missing"), MISSING)
    findings = tabulate(REAL, [Group(group("ILI", 24).keys, "paper", runs)])
    (row,) = rows(findings)
    assert (row.n, row.expected, row.baseline, row.value, row.gain) == (0, 1, None, None, None)
    assert row.paper is not None
    assert findings.overall == ()
    assert findings.coverage.missing == 2


def test_the_total_weighs_rows_and_tests_groups():
    raw = [4.0, 2.0, 3.0, 0.5, 0.6]
    sacm = [3.0, 1.9, 2.5, 0.45, 0.63]
    places = [("ILI", 24), ("ILI", 36), ("ILI", 48), ("ETTh1", 96), ("ETTh1", 192)]
    groups = [
        group(*place, raw=before, sacm=after)
        for place, before, after in zip(places, raw, sacm, strict=True)
    ]
    findings = tabulate(REAL, groups)
    mse, mae = findings.overall
    by_row = [100 * (1 - sum(sacm[:3]) / sum(raw[:3])), 100 * (1 - sum(sacm[3:]) / sum(raw[3:]))]
    assert mse.row_gain == pytest.approx(sum(by_row) / 2)
    each = [100 * (before - after) / before for before, after in zip(raw, sacm, strict=True)]
    assert mse.gain == mse.interval.mean == pytest.approx(sum(each) / 5)
    assert mse.interval.low < mse.interval.mean < mse.interval.high
    test = stats.wilcoxon(each)  # relative, for the data sets have scales of their own
    assert mse.comparison.wilcoxon.p_value == pytest.approx(test.pvalue)
    # Two tests with equal p-values: Holm doubles the smaller, and the other is no smaller.
    assert mse.adjusted_p_value == mae.adjusted_p_value == pytest.approx(min(1, 2 * test.pvalue))
    assert (mse.comparison.win_tie_loss.wins, mse.comparison.win_tie_loss.losses) == (4, 1)
    papers = [row.paper.gain for row in rows(findings)]
    assert (mse.paper_gain, mse.paper_rows) == (pytest.approx(sum(papers) / 2), 2)


def test_tests_are_of_relative_gains():
    # Nine small errors fall by about 5 %, six large ones rise by about 1 %.
    raw = [0.1 + 0.001 * i for i in range(9)] + [3.0 + 0.1 * i for i in range(6)]
    sacm = [value * (0.95 if value < 1 else 1.01) for value in raw]
    groups = [
        group("ILI", place, raw=before, sacm=after)
        for place, (before, after) in enumerate(zip(raw, sacm, strict=True))
    ]
    mse = tabulate(REAL, groups).overall[0]
    assert mse.gain > 0
    assert mse.comparison.effect_size.value > 0
    each = [100 * (1 - after / before) for before, after in zip(raw, sacm, strict=True)]
    assert mse.comparison.t_test.p_value == pytest.approx(stats.ttest_1samp(each, 0).pvalue)


def test_a_part_of_the_horizons_is_not_the_whole_row():
    declared = [{"data": "ILI", "backbone": "PatchTST"} for _ in range(4)]
    findings = tabulate(REAL, [group("ILI", 24, raw=4.0, sacm=3.0)], declared=declared)
    assert (rows(findings)[0].n, rows(findings)[0].expected) == (1, 4)


def test_rows_over_seeds_have_the_papers_test():
    seeds = replace(REAL, name="paired_seeds", rows=("data", "horizon", "backbone"))
    raw, sacm = [4.0, 4.2, 4.4, 4.1, 4.3], [3.6, 3.9, 4.2, 3.9, 4.25]
    groups = [
        replace(one, keys={**one.keys, "seed": seed})
        for seed, (before, after) in enumerate(zip(raw, sacm, strict=True))
        for one in (group("ILI", 24, raw=before, sacm=after),)
    ]
    groups += [replace(one, keys={**one.keys, "horizon": 36}) for one in groups]
    first, second = rows(tabulate(seeds, groups))
    p_value = stats.ttest_rel(raw, sacm).pvalue
    assert first.p_value == second.p_value == pytest.approx(p_value)
    assert first.adjusted_p_value == pytest.approx(2 * p_value)
    # As printed: 3.3997 and 2.8384 have a gain of 16.5 %.
    assert (first.paper.gain, first.paper.p_value) == (16.5, 0.004)


def test_pairs_of_unlike_code_are_counted():
    like, unlike = group("ILI", 24, raw=4.0, sacm=3.0), group("ILI", 36, raw=2.0, sacm=1.0)
    halves = [replace(run, made_with=f"sacm {i}") for i, run in enumerate(unlike.runs)]
    notes = tabulate(REAL, [like, replace(unlike, runs=tuple(halves))]).notes
    assert notes[-1].startswith("In 1 of 2 groups the runs were made by different code")
    assert tabulate(REAL, [like]).notes == REAL.notes


def test_ranks_need_three_strategies_in_three_groups():
    names = ("raw", "selective", "sacm")
    three = replace(REAL, strategies=names)
    values = [(3.0, 2.0, 1.0), (4.0, 3.5, 3.0), (5.0, 4.0, 4.5)]
    groups = [
        group("ILI", horizon, **dict(zip(names, line, strict=True)))
        for horizon, line in zip((24, 36, 48), values, strict=True)
    ]
    ranks = tabulate(three, groups).ranks
    assert dict(zip(ranks.names, ranks.average_ranks, strict=True)) == pytest.approx(
        {"raw": 3.0, "selective": 5 / 3, "sacm": 4 / 3}
    )
    assert tabulate(three, groups[:2]).ranks is None
    assert tabulate(REAL, groups).ranks is None
    broken = [*groups[:2], group("ILI", 48, raw=5.0, selective=None, sacm=4.0)]
    assert tabulate(three, broken).ranks is None


def test_the_best_fixed_rate_is_not_one_more_run():
    sweep = replace(REAL, strategies=("raw", "fixed(p=0.1)"), shown=("raw", BEST_FIXED))
    values = {"raw": 2.0, "fixed(p=0.1)": 1.5, BEST_FIXED: 1.5}
    findings = tabulate(sweep, [group("ILI", 24, **values)])
    assert findings.coverage.total == 2
    assert [row.strategy for row in findings.rows] == [BEST_FIXED, BEST_FIXED]


def test_gains_by_kind_of_metric():
    assert metric_gain("mse", 2.0, 1.5) == 25.0
    assert metric_gain("accuracy", 0.5, 0.6) == pytest.approx(10.0)
    assert metric_gain("rate_mean", 0.2, 0.3) is None
    assert metric_gain("train_seconds", 10.0, 12.0) == pytest.approx(-20.0)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "is damaged"),
        ("[]", "holds no findings"),
        ("3", "holds no findings"),
        ('{"name": "synth12"}', "holds no findings: title: field required"),
    ],
)
def test_files_that_hold_no_findings(tmp_path: Path, text, sentence):
    path = tmp_path / "findings.json"
    path.write_text(text)
    with pytest.raises(SACMError, match=sentence) as raised:
        read_findings(path)
    assert ": :" not in str(raised.value)


def test_findings_of_another_kind_of_value(tmp_path: Path):
    findings = tabulate(REAL, [group("ILI", 24, raw=4.0, sacm=3.0)])
    path = tmp_path / "findings.json"
    path.write_text(json.dumps(findings.to_dict()))
    assert read_findings(path) == findings
    record = findings.to_dict()
    record["rows"][0]["n"] = "many"
    path.write_text(json.dumps(record))
    with pytest.raises(DataError, match=r"rows.0.n: input should be a valid integer"):
        read_findings(path)
