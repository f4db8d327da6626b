"""A report in every format."""

from __future__ import annotations

import json

import pytest

from sacm.reports.table import Table
from sacm_lab.report import FORMATS, Report, latex
from tests.reports.reading import Page
from tests.reports.test_table import TABLE as TABLES

TABLE = Table(("data", "error"), (("<ILI>", 0.41234567), ("ETTh1", None)), "Errors & more")
REPORT = Report("A title", ("One <sentence>.",), (TABLE,), "run,mse\na,1\n", notes=("A note.",))


@pytest.mark.parametrize("style", FORMATS)
def test_a_report_in_every_format(style: str) -> None:
    text = REPORT.render(style)
    if style == "csv":
        assert text == "run,mse\na,1\n"
    elif style == "json":
        record = json.loads(text)
        assert record["sentences"] == ["One <sentence>."]
        assert record["tables"][0]["rows"] == TABLE.records()
    elif style == "html":
        page = Page(text)
        assert page.headings == ["Errors & more", "Notes"]
        assert "One <sentence>." in "".join(page.text)
    else:
        body = {"md": TABLE.markdown(), "latex": latex(TABLE), "table": TABLE.plain()}[style]
        assert body in text
        assert "A title" in text


def test_latex_is_a_table_environment() -> None:
    assert latex(TABLES).splitlines() == [
        r"\begin{table}[tbp]",
        r"\caption{Errors \& more}",
        r"\begin{tabular}{lllrr}",
        r"\toprule",
        r"data & network|x & strategy & n & error \\",
        r"\midrule",
        r"ETTh1 & PatchTST & raw & 5 & 0.4123 \\",
        r"ETTh1 & PatchTST & guard[x] & 5 & -- \\",
        r"<Weather> & PatchTST & raw & 3 & -- \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    text = latex(Table(("a_b",), (("−1 ± 2 …",), ("5 %",))))
    assert r"$-$1 $\pm$ 2 \ldots{}" in text
    assert r"a\_b" in text
    assert r"5 \%" in text
