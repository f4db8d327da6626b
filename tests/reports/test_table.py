"""One table in every format."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from sacm.reports.table import (
    Table,
    interval,
    mean_and_deviation,
    number,
    probability,
    signed,
)
from tests.reports.reading import Page

TABLE = Table(
    ("data", "network|x", "strategy", "n", "error"),
    (
        ("ETTh1", "PatchTST", "raw", 5, 0.41234567),
        ("ETTh1", "PatchTST", "guard[x]", 5, None),
        ("<Weather>", "PatchTST", "raw", 3, math.nan),
    ),
    "Errors & more",
    words=3,
)


def test_markdown_is_a_pipe_table() -> None:
    assert TABLE.markdown().splitlines() == [
        "| data | network\\|x | strategy | n | error |",
        "| --- | --- | --- | ---: | ---: |",
        "| ETTh1 | PatchTST | raw | 5 | 0.4123 |",
        "| ETTh1 | PatchTST | guard[x] | 5 | – |",
        "| <Weather> | PatchTST | raw | 3 | – |",
    ]
    assert Table(("a",), (("x\r\ny",),)).markdown().splitlines()[-1] == "| x y |"


def test_html_escapes_and_scrolls() -> None:
    html = TABLE.html(kind="settings")
    page = Page(html)
    assert page.tags.count("tr") == 4
    assert "&lt;Weather&gt;" in html
    assert '<table class="settings" aria-label="Errors &amp; more">' in html
    assert '<td class="text">raw</td><td>5</td><td>0.4123</td>' in html


def test_records_keep_every_digit() -> None:
    assert [record["error"] for record in TABLE.records()] == [0.41234567, None, None]
    assert TABLE.records()[0]["n"] == 5


def test_a_frame_becomes_a_table() -> None:
    frame = pd.DataFrame({"who": ["a", "b"], "n": np.array([1, 2]), "x": [0.5, np.nan]})
    table = Table.from_frame(frame)
    assert table.cells == [("a", "1", "0.5000"), ("b", "2", "–")]
    assert table.records() == [{"who": "a", "n": 1, "x": 0.5}, {"who": "b", "n": 2, "x": None}]


def test_plain_text_lines_up() -> None:
    assert Table(("a", "n"), (("x", 1), ("longer", 22))).plain().splitlines() == [
        "a        n",
        "x        1",
        "longer  22",
    ]


def test_a_printed_table_has_a_rule_and_is_never_wrapped(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = tuple((f"name [{at}]", "x" * 200, at) for at in range(3))
    Table(("a", "long", "n"), rows, "Errors", words=2).print()
    caption, before, head, rule, *lines, after = capsys.readouterr().out.split("\n")[:-1]
    assert (caption, before, after) == ("Errors", "", "")
    assert head.split() == ["a", "long", "n"]
    assert rule == " " + "─" * (len(head) - 1)
    assert [tuple(line.strip().split("  ")) for line in lines] == [
        (name, text, str(at)) for name, text, at in rows
    ]


def test_numbers_as_text() -> None:
    values = (1.0, -0.00123456, 123456.7, 1e9, math.inf, 7, "raw")
    assert [number(value) for value in values] == [
        *("1.000", "−0.001235", "123457", "1.000e+09", "inf", "7", "raw"),
    ]
    assert (signed(3.44), signed(-0.04), signed(-2)) == ("+3.4", "+0.0", "−2.0")
    assert (probability(0.0004), probability(0.05)) == ("<0.001", "0.050")
    assert (interval(-1.25, 3), interval(None, 2)) == ("−1.2 … +3.0", "–")
    assert mean_and_deviation(2.5, 0.123456) == "2.500 ± 0.123"
    assert mean_and_deviation(2.5, None) == "2.500"
