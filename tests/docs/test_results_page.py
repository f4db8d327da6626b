"""The results page shows what the kept results say."""

from __future__ import annotations

from pathlib import Path

from sacm_lab.paper.commands import summary_table

ROOT = Path(__file__).parents[2]


def test_the_table_is_the_one_that_the_command_makes() -> None:
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    table = page.partition("<!-- results:begin -->")[2].partition("<!-- results:end -->")[0]
    assert table.strip() == summary_table(ROOT / "results").markdown()
