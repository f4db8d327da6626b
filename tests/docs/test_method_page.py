"""The method page points at the lines it says it does."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "method.md").read_text(encoding="utf-8")
REFERENCE = re.compile(r"\[`(\w+)`\]\(\.\./(src/sacm/[\w/]+\.py)#L(\d+)\) `([\w/]+\.py):(\d+)`")


def test_every_equation_is_where_the_page_says() -> None:
    references = REFERENCE.findall(PAGE)
    assert len(references) == PAGE.count("../src/")
    for name, path, line, short, again in references:
        assert line == again
        assert path == f"src/sacm/{short}"
        text = (ROOT / path).read_text(encoding="utf-8").splitlines()[int(line) - 1]
        assert re.match(rf"\s*(def|class) {name}\b", text), f"{path}:{line} is {text!r}"
