"""The page on strategies says what the code says."""

from __future__ import annotations

import re
from pathlib import Path

from sacm.strategies import describe, names
from sacm.strategies.registry import STRATEGIES, spell_value

PAGE = Path(__file__).parents[2] / "docs" / "strategies.md"
OTHER_SECTIONS = {"Which strategy to choose", "How to write a strategy", "Rivals"}
ROW = re.compile(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|", re.MULTILINE)


def sections() -> dict[str, str]:
    """The text below each heading."""
    parts = re.split(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def of_this_package() -> list[str]:
    return [name for name in names() if STRATEGIES.get(name).__module__.startswith("sacm.")]


def test_every_rival_is_listed() -> None:
    rivals = sorted(set(names()) - set(of_this_package()))
    assert re.findall(r"^\| `(\w+)` \|", sections()["Rivals"], flags=re.MULTILINE) == rivals


def test_every_strategy_has_a_section_and_none_is_left_over() -> None:
    assert sorted(set(sections()) - OTHER_SECTIONS) == sorted(of_this_package())


def test_every_option_is_listed_with_its_default_and_values() -> None:
    for strategy in [describe(name) for name in names()]:
        if strategy.name not in of_this_package():
            continue
        rows = {
            name: (default, takes)
            for name, default, takes in ROW.findall(sections()[strategy.name])
        }
        assert list(rows) == [option.name for option in strategy.options], strategy.name
        for option in strategy.options:
            default, takes = rows[option.name]
            needed = option.default is None
            text = "(needed)" if needed else spell_value(option.default) or "(none)"
            assert default == text, (strategy.name, option.name)
            if option.kind != "text":
                assert takes == option.kind, (strategy.name, option.name)
