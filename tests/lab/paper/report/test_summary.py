from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sacm.errors import DataError
from sacm.experiments.named.findings import Group
from sacm.reports.named.summary import BEGIN, END, replace_between, summary_table, write_summary
from tests.lab.paper.report.cases import any_findings, done, hand_made

ANY = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))


def test_one_line_an_experiment_and_one_a_data_set():
    table = summary_table([hand_made()])
    cells = [row.cells for row in table.rows]
    assert cells[0][:8] == (
        "small, stride 4",
        "2 data sets",
        "sacm",
        "MSE",
        "paper, small",
        "11/16",
        "5",
        "+3.0 %",
    )
    assert cells[0][9:] == ("3/1/1", "0.500", "+8.3 %", "+20.0 %")
    assert [row.group for row in table.rows] == [True, False, False]
    # Three gains that are not zero, of 5, 10 and −10 %: an exact p-value of 1.
    assert cells[1][1:2] + cells[1][5:8] + cells[1][9:] == (
        *("ILI", "8/8", "4", "+1.2 %"),
        *("2/1/1", "1.000", "+8.3 %", "+20.0 %"),
    )
    assert cells[2][1:2] + cells[2][5:] == (
        *("ETTh1", "3/8", "1", "+10.0 %", "–"),
        *("1/0/0", "–", "–", "–"),
    )


def test_a_part_of_the_grid_says_of_how_much():
    found = hand_made()
    rows = summary_table([replace(found, coverage=replace(found.coverage, declared=144))]).rows
    assert [row.cells[5] for row in rows] == ["11/16 of 144", "8/8", "3/8"]


def test_data_sets_without_a_run_are_left_out():
    found = hand_made()
    groups = tuple(
        replace(group, keys={**group.keys, "data": "ETTm1"}) if place > 5 else group
        for place, group in enumerate(found.groups)
    )
    names = [row.cells[1] for row in summary_table([replace(found, groups=groups)]).rows]
    assert names == ["3 data sets", "ILI", "ETTh1"]


def test_an_adjusted_score_is_followed_by_a_plain_one():
    found = hand_made()
    runs = (done("raw", f1_pa=0.8, f1=0.3), done("sacm", f1_pa=0.9, f1=0.2))
    found = replace(
        found,
        task="anomaly",
        metrics=("f1_pa", "f1"),
        groups=(Group({"data": "SMD"}, "paper", runs),),
        rows=(),
        overall=(),
    )
    assert [row.cells[3] for row in summary_table([found]).rows] == ["F1 (PA)", "F1"]


@ANY
@given(st.lists(any_findings(), max_size=2))
def test_any_findings(found):
    assert len(summary_table(found).rows) >= len(found)


def test_a_file_changes_between_the_marks_only(tmp_path):
    path = tmp_path / "README.md"
    path.write_bytes(f"before\r\n{BEGIN}\nold\n{END}\nafter\n".encode())
    write_summary([hand_made()], path)
    text = path.read_bytes().decode()
    assert text.startswith(f"before\r\n{BEGIN}\n| experiment |")
    assert text.endswith(f"\n{END}\nafter\n")
    assert "old" not in text
    write_summary([hand_made()], path)
    assert path.read_bytes().decode() == text


def test_marks_must_be_there_once_and_in_order(tmp_path):
    assert replace_between("a<b>x</b>c", "<b>", "</b>", "new") == "a<b>\nnew\n</b>c"
    for wrong in ("", "<b>", "<b><b></b>", "</b><b>"):
        with pytest.raises(DataError, match="must"):
            replace_between(wrong, "<b>", "</b>", "new")
    path = tmp_path / "README.md"
    with pytest.raises(DataError, match=r"README\.md cannot be read"):
        write_summary([], path)
    path.write_text("nothing")
    with pytest.raises(DataError, match=r"README\.md: the mark"):
        write_summary([], path)
    assert path.read_text() == "nothing"
