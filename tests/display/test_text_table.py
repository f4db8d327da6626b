from __future__ import annotations

import io

import pytest
from rich.console import Console

from sacm.display.text_table import TableRow, TextTable
from sacm.errors import ArgumentError
from tests.reports.reading import Page

TABLE = TextTable(
    ("name", "a|b", "value"),
    (TableRow(("<x>", "[red]", "1")), TableRow(("y", "", "2"), group=True, quiet=True)),
    "Two rows",
    text_columns=2,
)


def test_html_escapes_and_marks_rows():
    html = TABLE.html(kind="settings")
    page = Page(html)
    assert page.tags.count("tr") == 3
    assert "&lt;x&gt;" in html
    assert '<tr class="group quiet">' in html
    assert '<table class="settings" aria-label="Two rows">' in html
    assert "<td>1</td>" in html
    assert '<td class="text">&lt;x&gt;</td>' in html


def test_markdown_is_a_pipe_table():
    assert TABLE.markdown() == (
        "| name | a\\|b | value |\n| --- | --- | ---: |\n| <x> | [red] | 1 |\n| y |  | 2 |"
    )


def test_markdown_keeps_a_row_on_its_line():
    assert TextTable(("a",), (TableRow(("x\r\ny",)),)).markdown().splitlines()[-1] == "| x y |"


def test_latex_is_a_table_environment():
    assert TABLE.latex() == "\n".join(
        [
            r"\begin{table}[tbp]",
            r"\centering",
            r"\caption{Two rows}",
            r"\small",
            r"\begin{tabular}{@{}llr@{}}",
            r"\toprule",
            r"name & a\textbar{}b & value \\",
            r"\midrule",
            r"\textless{}x\textgreater{} & {[}red{]} & 1 \\",
            r"\midrule",
            r"\textsl{y} & \textsl{} & \textsl{2} \\",
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def test_pieces_hold_all_rows_in_order():
    pieces = TABLE.pieces(1)
    assert [piece.rows for piece in pieces] == [TABLE.rows[:1], TABLE.rows[1:]]
    assert [piece.headings for piece in pieces] == [TABLE.headings] * 2
    assert len(TextTable(("a",), ()).pieces(5)) == 1


def test_terminal_shows_markup_as_it_is():
    buffer = io.StringIO()
    Console(file=buffer, width=60).print(TABLE.rich())
    printed = buffer.getvalue()
    assert "[red]" in printed
    assert "Two rows" in printed


def test_some_columns_in_another_order():
    part = TABLE.only(["value", "name"])
    assert part.rows[0].cells == ("1", "<x>")
    assert (part.text_columns, part.rows[1].quiet) == (1, True)


def test_rows_must_fit():
    with pytest.raises(ArgumentError, match="row 1 has 2 cells for 1 headings"):
        TextTable(("a",), (TableRow(("1", "2")),))
