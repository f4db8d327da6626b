from __future__ import annotations

import csv
import io
import re

import pytest
from hypothesis import HealthCheck, given, settings

from sacm.errors import ArgumentError
from sacm.reports.named.render import render, write_report
from sacm.reports.named.tables import result_table
from tests.lab.paper.report.cases import REASON, any_findings, hand_made, with_ranks

ANY = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))


def records(text):
    return list(csv.reader(io.StringIO(text, newline="")))


@ANY
@given(any_findings())
def test_csv_gives_every_value_back(findings):
    heading, *lines = records(render(findings, "csv"))
    keys = len(heading) - 9
    found = [(line[keys], line[keys + 1], line[keys + 7], line[keys + 8]) for line in lines]
    expected = []
    for group in findings.groups:
        for run in group.runs:
            values = run.values or {}
            for name in dict.fromkeys((*findings.metrics, *values)):
                value = "" if name not in values else repr(values[name])
                expected.append((group.size, run.strategy, name, value))
    assert found == expected


@ANY
@given(any_findings())
def test_latex_is_balanced(findings):
    text = re.sub(r"\\[\\{}$&#_%]", "", render(findings, "latex"))
    code = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    assert code.count("{") == code.count("}")
    assert code.count("$") % 2 == 0
    assert code.count(r"\begin{table}") == code.count(r"\end{table}") > 0
    assert not re.search(r"[#_%^~]", code)


@ANY
@given(any_findings())
def test_markdown_tables_have_one_line_a_row(findings):
    lines = render(findings, "md").splitlines()
    wanted = result_table(findings).markdown().splitlines() if findings.rows else []
    assert all(line in lines for line in wanted)


def test_csv_says_why_a_run_failed():
    heading, *lines = records(render(hand_made(), "csv"))
    table = [dict(zip(heading, line, strict=True)) for line in lines]
    assert len(table) == 16
    (failed,) = [line for line in table if line["state"] == "failed"]
    assert failed["reason"] == REASON
    assert (failed["data"], failed["horizon"], failed["value"]) == ("ETTh1", "48", "")
    first = table[0]
    assert (first["strategy"], first["metric"], first["value"]) == ("raw", "mse", "2.0")
    assert (first["epochs"], first["seconds"], first["run"]) == ("2", "1.5", "run_raw")


def test_markdown_begins_with_what_was_found():
    text = render(hand_made(), "md")
    assert text.startswith("# A small grid\n\ntable 1\n\nOf the 16 runs of the grid")
    assert "- Two horizons instead of four." in text
    assert "| ILI | PatchTST | MSE | 3.000 ± 1.414 | 2.750 ± 1.202 | +8.3 % | 2/0/0 | 2/2 |" in text


def test_without_detail_there_are_no_rows():
    for format in ("md", "latex"):
        assert "1.414" in render(hand_made(), format)
        assert "1.414" not in render(hand_made(), format, detail=False)
    assert "0.91235" in render(hand_made(), "html")
    assert "0.91235" not in render(hand_made(), "html", detail=False)


def test_latex_splits_what_no_page_can_hold():
    found = with_ranks()
    many = type(found)(**{**vars(found), "rows": found.rows * 10})
    assert render(many, "latex").count(r"\toprule") == 6


@pytest.mark.parametrize("format", ["md", "latex", "csv", "html"])
def test_files_hold_what_was_rendered(tmp_path, format):
    path = tmp_path / "deep" / "report"
    write_report(hand_made(), path, format=format)
    assert path.read_bytes().decode() == render(hand_made(), format)
    assert [file.name for file in path.parent.iterdir()] == ["report"]


def test_unknown_formats():
    with pytest.raises(ArgumentError, match="md, latex, csv, html"):
        render(hand_made(), "pdf")
