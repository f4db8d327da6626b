"""The table of thresholds on the page on quality is that of `GuardConfig`."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from pathlib import Path

from sacm.quality.config import KINDS, GuardConfig
from sacm.quality.rules import KEYS

PAGE = (Path(__file__).parents[2] / "docs" / "quality.md").read_text(encoding="utf-8")


def config_table() -> str:
    """A row for each field, with the words beside it."""
    source = inspect.getsource(GuardConfig)
    meaning = dict(re.findall(r"^    (\w+): .+?  # (.+)$", source, flags=re.MULTILINE))
    rows = [f"| `{f.name}` | {f.default} | {meaning[f.name]} |" for f in fields(GuardConfig)]
    return "\n".join(["| field | default | meaning |", "|---|---|---|", *rows])


def test_every_threshold_is_in_the_table() -> None:
    table = PAGE.partition("<!-- config:begin -->")[2].partition("<!-- config:end -->")[0]
    assert table.strip() == config_table()


def test_every_kind_and_every_rule_is_explained() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", PAGE, flags=re.MULTILINE)
    assert set(KINDS[1:]) | set(KEYS) <= set(rows)
