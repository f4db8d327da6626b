from __future__ import annotations

from sacm.experiments.compare import compare_runs
from sacm.reports.compare_tables import (
    HEADINGS,
    NARROW,
    cost_table,
    environment_table,
    paired_table,
    settings_table,
)
from tests.experiments.cases import write_pairs, write_run


def cells(table, strategy):
    row = next(row for row in table.rows if row.cells[1] == strategy)
    return dict(zip(table.headings, row.cells, strict=True))


def test_one_row_a_strategy(tmp_path):
    found = compare_runs(write_pairs(tmp_path, "mse", [2.0, 4.0, 3.0], [1.0, 3.0, 3.5]))
    table = paired_table(found)
    assert table.headings == HEADINGS
    assert cells(table, "raw")["mean ± std"] == "3.000 ± 1.000"
    assert cells(table, "raw")["gain"] == ""
    sacm = cells(table, "sacm")
    assert sacm["mean ± std"] == "2.500 ± 1.323"
    assert sacm["difference"] == "+0.500"
    assert sacm["gain"] == "+16.7 %"
    assert sacm["W/T/L"] == "2/0/1"
    assert (sacm["p (t)"], sacm["p (W)"], sacm["n"]) == ("0.423", "0.500", "3")
    assert set(table.only(NARROW).headings) == set(NARROW)


def test_the_papers_rows_stand_below_ours(tmp_path):
    ili = {"data": "ILI", "backbone": "PatchTST"}
    table = paired_table(compare_runs(write_pairs(tmp_path, "mse", [3.0], [2.0], **ili)))
    assert [row.cells[1] for row in table.rows] == ["raw", "sacm", "raw (paper)", "sacm (paper)"]
    paper = cells(table, "sacm (paper)")
    assert paper["mean ± std"] == "2.8384 ± 0.1953"
    assert (paper["gain"], paper["W/T/L"], paper["p (t)"]) == ("+16.5 %", "5/0/0", "0.004")
    assert paper["n"] == "5"
    assert [row.quiet for row in table.rows] == [False, False, True, True]


def test_random_scores_have_their_row_under_point_adjustment(tmp_path):
    row = {"f1_pa": 0.9, "f1_pa_random": 0.8, "precision": None}
    runs = [
        write_run(tmp_path, strategy=s, seed=1, row=row, task="anomaly", backbone="TranAD")
        for s in ("raw", "sacm")
    ]
    table = paired_table(compare_runs(runs))
    assert [row.cells[:3] for row in table.rows] == [
        ("F1 (PA)", "raw", "0.9000"),
        ("", "random (raw)", "0.8000"),
        ("", "sacm", "0.9000"),
        ("", "random (sacm)", "0.8000"),
        ("precision", "raw", "–"),
        ("", "sacm", "–"),
    ]
    assert table.rows[2].cells[3] == "+0.00 pp"
    assert table.rows[1].cells[3:9] == ("",) * 6


def test_costs_settings_and_environment(tmp_path):
    runs = [
        write_run(tmp_path, strategy="raw", seed=1, row={"mse": 1.0}, epochs=4, seconds=2.0),
        write_run(tmp_path, strategy="sacm", seed=1, row={"mse": 1.0}, rates=(0.2, 0.05)),
    ]
    found = compare_runs(runs)
    first, second = cost_table(found).rows
    assert first.cells == ("raw", "4.00", "2.00", "0.500", "10", "–", "–", "1")
    assert second.cells[5:] == ("0.200", "0.0500", "1")
    shown = dict(row.cells for row in settings_table(found).rows)
    assert shown["learning rate"] == "0.0002"
    assert shown["strategies"] == "raw, sacm"
    assert shown["data fingerprint"] == "0123456789abcdef"
    assert dict(row.cells for row in environment_table(found).rows) == {"python": "3"}
