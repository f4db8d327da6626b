"""A report in every format."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from sacm.errors import ArgumentError
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


def test_a_report_is_printed_and_written(tmp_path) -> None:
    buffer = io.StringIO()
    REPORT.print(Console(file=buffer, width=80))
    assert "One <sentence>.\nNote: A note.\n" in buffer.getvalue()
    REPORT.write(tmp_path / "report.md", "md")
    assert (tmp_path / "report.md").read_text(encoding="utf-8") == REPORT.render("md")
    with pytest.raises(ArgumentError, match="--format 'pdf': use table, md, latex"):
        REPORT.render("pdf")
