"""Tables on terminals of any width."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from sacm.display.terminal_table import print_table
from sacm.display.text_table import TableRow, TextTable

HEADINGS = ("data", "network", "strategy", "n", "mean error", "largest error")
TABLE = TextTable(
    HEADINGS,
    (
        TableRow(("ETTh1", "PatchTST", "raw", "5", "0.41 ± 0.02", "1.3"), group=True),
        TableRow(("ETTh1", "PatchTST", "guard[x]", "5", "0.39 ± 0.01", "1.1")),
        TableRow(("Weather", "PatchTST", "raw", "3", "0.21 ± 0.00", "1.2"), group=True),
    ),
    "Errors",
    text_columns=3,
)


def printed(table: TextTable, width: int) -> str:
    buffer = io.StringIO()
    print_table(Console(file=buffer, width=width), table)
    return buffer.getvalue()


def test_where_there_is_room_every_row_has_all_its_words():
    lines = printed(TABLE, 80).splitlines()
    assert [line.split()[:3] for line in lines if "0." in line] == [
        ["ETTh1", "PatchTST", "raw"],
        ["ETTh1", "PatchTST", "guard[x]"],
        ["Weather", "PatchTST", "raw"],
    ]


def test_words_that_rows_share_become_a_line_above_them():
    assert printed(TABLE, 45).splitlines() == [
        "Errors",
        "  strategy  n   mean error  largest error",
        "─────────────────────────────────────────",
        "ETTh1, PatchTST",
        "  raw       5  0.41 ± 0.02            1.3",
        "  guard[x]  5  0.39 ± 0.01            1.1",
        "Weather, PatchTST",
        "  raw       3  0.21 ± 0.00            1.2",
        "",
    ]


def test_blank_words_mean_those_of_the_row_above():
    rows = (TableRow(("T", "raw", "1" * 20)), TableRow(("", "guard", "2" * 20)))
    lines = printed(TextTable(("protocol", "strategy", "x"), rows, text_columns=2), 36).splitlines()
    assert [line.split()[0] for line in lines[2:5]] == ["T", "raw", "guard"]


@pytest.mark.parametrize("width", [30, 40, 50])
def test_columns_that_do_not_fit_follow_in_another_table(width):
    text = printed(TABLE, width)
    assert max(map(len, text.splitlines())) <= width
    for cell in ("0.41 ± 0.02", "largest error", "1.3", "guard[x]"):
        assert cell in text


@given(
    words=st.integers(1, 4),
    numbers=st.integers(1, 8),
    rows=st.integers(1, 6),
    width=st.integers(10, 120),
    cell=st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=8),
)
def test_no_cell_is_ever_cut(words, numbers, rows, width, cell):
    headings = tuple(f"h{at}" for at in range(words + numbers))
    body = tuple(
        TableRow(tuple(f"{cell}{row}x{at}" for at in range(words + numbers))) for row in range(rows)
    )
    text = printed(TextTable(headings, body, text_columns=words), width).split()
    shown = {one.strip(",") for one in text}
    assert {one for row in body for one in row.cells} <= shown
