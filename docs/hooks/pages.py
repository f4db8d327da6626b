"""Make pages that GitHub shows as they are fit for the site.

On the site a link to a symbol in a source file leads to its code on the page "Code of the method";
a link to any other file outside `docs/` becomes its text with the path behind it.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SYMBOL = re.compile(r"\[`(\w+)`\]\((?:\.\./)+(src/sacm/[\w/]+\.py)\)")
OTHER_FILE = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[\w./-]+)\)")
SHOWN = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)
# `no-run` and `run` are for the tests; highlighting knows the first word only.
FENCE = re.compile(r"^```(python|console) (?:no-run|run)$", re.MULTILINE)
CODE_MARK = "<!-- code of the method -->"


def qualified_name(symbol: str, path: str) -> str:
    """Dotted name of a function, class or method of a source file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    module = path.removeprefix("src/").removesuffix(".py").replace("/", ".")
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        if node.name == symbol:
            return f"{module}.{symbol}"
        methods = [each.name for each in node.body if isinstance(each, ast.FunctionDef)]
        if symbol in methods:
            return f"{module}.{node.name}.{symbol}"
    raise ValueError(f"{path} defines no {symbol}")


def method_symbols() -> list[str]:
    """Dotted names of what the method page links to and the API page does not show."""
    page = (ROOT / "docs" / "method.md").read_text(encoding="utf-8")
    api = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    shown = tuple(f"{name}." for name in SHOWN.findall(api))
    linked = dict.fromkeys(qualified_name(*found) for found in SYMBOL.findall(page))
    return [name for name in linked if not f"{name}.".startswith(shown)]


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Called by mkdocs for every page."""
    folder = Path(page.file.src_path).parent

    def point_to_code(match: re.Match[str]) -> str:
        return f"[`{match[1]}`][{qualified_name(match[1], match[2])}]"

    def name_the_file(match: re.Match[str]) -> str:
        target = (ROOT / "docs" / folder / match[2]).resolve()
        if target.is_relative_to(ROOT / "docs") or not target.exists():
            return match[0]  # a page, or a mistake that mkdocs reports
        path = f"`{target.relative_to(ROOT)}`"
        return path if match[1].strip("`") in path else f"{match[1]} ({path})"

    markdown = FENCE.sub(r"```\1", markdown)
    markdown = SYMBOL.sub(point_to_code, markdown)
    if CODE_MARK in markdown:
        markdown = markdown.replace(CODE_MARK, "\n".join(f"::: {s}" for s in method_symbols()))
    return OTHER_FILE.sub(name_the_file, markdown)
