from __future__ import annotations

import io
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from rich.cells import cell_len
from rich.console import Console

from sacm.experiments.named.findings import Group, PaperValue, RunFinding
from sacm.reports.named.tables import (
    coverage_table,
    failure_table,
    key_text,
    narrow_overall_table,
    narrow_result_table,
    overall_table,
    rank_table,
    result_legend,
    result_table,
)
from tests.lab.paper.report.cases import REASON, any_findings, done, hand_made, with_ranks

ANY = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))


def line(table, place):
    return dict(zip(table.headings, table.rows[place].cells, strict=True))


def test_a_pair_stands_side_by_side_with_the_papers():
    table = result_table(hand_made())
    assert line(table, 0) == {
        "data": "ILI",
        "backbone": "PatchTST",
        "metric": "MSE",
        "raw": "3.000 ± 1.414",
        "sacm": "2.750 ± 1.202",
        "gain": "+8.3 %",
        "W/T/L": "2/0/0",
        "n": "2/2",
        "paper raw": "2.500",
        "paper sacm": "2.000",
        "paper gain": "+20.0 %",
        "Δ gain": "−11.7 pp",
    }
    assert [row.group for row in table.rows] == [True, False, True, False]


def test_what_is_not_there_is_shown_so():
    last = line(result_table(hand_made()), 3)
    assert (last["raw"], last["gain"], last["W/T/L"], last["n"]) == ("–", "–", "–", "0/2")
    assert (last["paper raw"], last["Δ gain"]) == ("–", "–")


def test_several_strategies_have_a_line_each():
    table = result_table(with_ranks())
    assert "strategy" in table.headings
    assert [line(table, place)["strategy"] for place in (0, 1)] == ["fixed", "sacm"]


def test_rows_over_seeds_have_a_test_of_their_own():
    found = hand_made()
    paper = replace(found.rows[0].paper, p_value=0.056)
    rows = (
        replace(found.rows[0], p_value=0.012, adjusted_p_value=0.024, paper=paper),
        *found.rows[1:],
    )
    first, second = (line(result_table(replace(found, rows=rows)), place) for place in (0, 1))
    assert (first["p (t)"], first["p (t, Holm)"], first["paper p"]) == ("0.012", "0.024", "0.056")
    assert (second["p (t)"], second["paper p"]) == ("–", "–")
    assert "paired t-test over seeds" in result_legend(replace(found, rows=rows))


def test_the_best_fixed_rate_says_which():
    found = with_ranks()
    best = replace(done("best_fixed", mse=1.0), chosen="fixed(p=0.1)")
    groups = tuple(replace(group, runs=(*group.runs, best)) for group in found.groups)
    row = replace(
        found.rows[0],
        strategy="best_fixed",
        paper=PaperValue(2.5, 2.0, 20.0, chosen="fixed(p=0.2)"),
    )
    table = result_table(replace(found, groups=groups, rows=(row,)))
    assert line(table, 0)["strategy"] == "best_fixed: fixed(p=0.1); paper fixed(p=0.2)"


def test_ranks_name_those_not_told_apart():
    ranks = with_ranks().ranks
    assert ranks is not None
    lines = [row.cells for row in rank_table(ranks).rows]
    assert [cells[0] for cells in lines] == list(ranks.names)
    joined = {name for clique in ranks.cliques for name in clique}
    assert all((cells[2] == "–") == (cells[0] not in joined) for cells in lines)


def test_one_strategy_has_no_gains():
    found = hand_made()
    rows = tuple(replace(row, strategy="raw", baseline=None, gain=None) for row in found.rows)
    table = result_table(replace(found, strategies=("raw",), rows=rows, overall=()))
    assert table.headings == ("data", "backbone", "metric", "strategy", "value", "n", "paper value")


def test_everything_together():
    found = hand_made()
    (row,) = overall_table(found).rows
    assert row.cells[:6] == ("MSE", "sacm", "5", "1.900 → 1.810", "+4.7 %", "+3.0 %")
    assert row.cells[7] == "3/1/1"
    assert row.cells[10:] == ("0.500", "0.50", "+8.3 %", "+20.0 %", "1")
    low, high = (float(end.replace("−", "-")) for end in row.cells[6].split(" … "))
    assert low < 3.0 < high  # gains 5, 10, −10, 0, 10


def test_shares_gain_percentage_points():
    found = hand_made()
    row = replace(found.rows[0], metric="accuracy", gain=1.25)
    assert line(result_table(replace(found, metrics=("accuracy",), rows=(row,))), 0)["gain"] == (
        "+1.2 pp"
    )
    assert "in percentage points" in result_legend(replace(found, metrics=("accuracy",)))


def test_random_scores_stand_below_adjusted_ones():
    found = hand_made()
    groups = tuple(
        Group({}, "paper", (done("raw", f1_pa=0.8), done("sacm", f1_pa=0.9, f1_pa_random=reached)))
        for reached in (0.7, 0.8)
    )
    overall = (replace(found.overall[0], metric="f1_pa"),)
    table = overall_table(replace(found, metrics=("f1_pa",), groups=groups, overall=overall))
    assert table.rows[1].cells[1:3] == ("random (sacm): 0.7500", "2")
    assert table.rows[1].quiet


def test_coverage_by_strategy():
    rows = [row.cells for row in coverage_table(hand_made()).rows]
    assert rows == [
        ("raw", "6", "0", "2", "8"),
        ("sacm", "5", "1", "2", "8"),
        ("all", "11", "1", "4", "16"),
    ]


def test_the_best_fixed_rate_is_no_run_of_its_own():
    found = hand_made()
    best = RunFinding("best_fixed", "failed", "all rates failed")
    group = replace(found.groups[0], runs=(*found.groups[0].runs, best))
    found = replace(found, groups=(group, *found.groups[1:]))
    assert "best_fixed" not in [row.cells[0] for row in coverage_table(found).rows]
    assert len(failure_table(found).rows) == 1


def test_failures_say_why():
    (row,) = failure_table(hand_made()).rows
    assert row.cells == ("ETTh1", "PatchTST", "48", "paper", "sacm", REASON)


def test_keys_as_text():
    assert [key_text(key) for key in ("a", 96, 0.25, 1.0, None)] == ["a", "96", "0.25", "1", "–"]


def test_a_terminal_counts_pairs_only_where_some_are_missing():
    found = hand_made()
    assert "n" in narrow_result_table(found).headings
    complete = replace(found, rows=tuple(replace(row, n=row.expected) for row in found.rows))
    assert "n" not in narrow_result_table(complete).headings


def test_names_stay_whole_in_a_terminal():
    found = hand_made()
    names = {"PatchTST": "MultiPatchFormer", "ILI": "Exchange Rate"}
    rows = [
        replace(row, keys={key: names.get(str(value), value) for key, value in row.keys.items()})
        for row in found.rows
    ]
    out = io.StringIO()
    Console(file=out, width=80).print(narrow_result_table(replace(found, rows=tuple(rows))).rich())
    lines = out.getvalue().splitlines()
    assert sum("Exchange Rate" in one and "MultiPatchFormer" in one for one in lines) == 1
    assert all(len(one) <= 80 for one in lines)


@ANY
@given(any_findings())
def test_a_terminal_shows_any_findings(findings):
    out = io.StringIO()
    for table in (narrow_result_table, narrow_overall_table, coverage_table, failure_table):
        Console(file=out, width=80).print(table(findings).rich())
    assert all(cell_len(one) <= 80 for one in out.getvalue().splitlines())
