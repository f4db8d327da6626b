"""The table of options for reading on the page on data is that of the code."""

from __future__ import annotations

import re
from pathlib import Path

from sacm.settings import ReadOptions

PAGE = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(\w+)=` \| `--([\w-]+) [^|]+` \| (.+) \|$", re.MULTILINE)


def test_every_option_for_reading_is_listed_with_its_help() -> None:
    table = PAGE.partition("<!-- options:begin -->")[2].partition("<!-- options:end -->")[0]
    expected = []
    for name, field in ReadOptions.model_fields.items():
        flag = dict(field.json_schema_extra or {})["flag"] or name.replace("_", "-")
        expected.append((name, str(flag).removeprefix("--"), field.description))
    assert ROW.findall(table) == expected
