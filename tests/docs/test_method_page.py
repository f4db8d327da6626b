"""The method page names symbols that are defined in the files it links to."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "method.md").read_text(encoding="utf-8")
REFERENCE = re.compile(r"\[`(\w+)`\]\(\.\./(src/sacm/[\w/]+\.py)\)")


def defined_names(path: str) -> set[str]:
    """Functions and classes of a file, methods included."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {
        node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }


def test_every_equation_is_where_the_page_says() -> None:
    references = REFERENCE.findall(PAGE)
    assert len(references) == PAGE.count("../src/") > 25
    missing = [f"{name} in {path}" for name, path in references if name not in defined_names(path)]
    assert missing == []
