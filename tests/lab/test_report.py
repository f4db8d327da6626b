"""A report in every format."""

from __future__ import annotations

import json

import pytest

from sacm.reports.table import Table
from sacm_lab.report import FORMATS, Report
from tests.reports.reading import Page

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
        body = {"md": TABLE.markdown(), "latex": TABLE.latex(), "table": TABLE.plain()}[style]
        assert body in text
        assert "A title" in text
