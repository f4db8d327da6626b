"""The tables of thresholds on the page on quality are those of the code."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from sacm.quality.config import KINDS, Fixed, GuardConfig
from sacm.quality.rules import KEYS

PAGE = (Path(__file__).parents[2] / "docs" / "quality.md").read_text(encoding="utf-8")


def table_of(settings: type) -> str:
    """A row for each setting, with the words beside it."""
    pattern = r"^    (\w+)(?:: [\w\[\], ]+)? = .+?  # (.+)$"
    source = re.findall(pattern, inspect.getsource(settings), flags=re.MULTILINE)
    rows = [f"| `{name}` | {getattr(settings, name)} | {meaning} |" for name, meaning in source]
    return "\n".join(["| field | default | meaning |", "|---|---|---|", *rows])


@pytest.mark.parametrize(("name", "settings"), [("config", GuardConfig), ("fixed", Fixed)])
def test_every_threshold_is_in_a_table(name: str, settings: type) -> None:
    table = PAGE.partition(f"<!-- {name}:begin -->")[2].partition(f"<!-- {name}:end -->")[0]
    assert table.strip() == table_of(settings)


def test_every_kind_and_every_rule_is_explained() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", PAGE, flags=re.MULTILINE)
    assert set(KINDS[1:]) | set(KEYS) <= set(rows)
