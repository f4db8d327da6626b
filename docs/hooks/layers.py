"""The picture and the table of the package's parts, drawn from the edges that the tests hold."""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
MARK = "<!-- layers -->"
WIDTH, HEIGHT, GAP, ROW = 110, 34, 14, 74
Edges = dict[str, set[str]]


def read_edges() -> Edges:
    """`ALLOWED` of tests/test_architecture.py, without the package file itself."""
    path = ROOT / "tests" / "test_architecture.py"
    spec = importlib.util.spec_from_file_location("architecture", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    allowed: Edges = module.ALLOWED
    return {part: targets & allowed.keys() for part, targets in allowed.items()}


def levels(edges: Edges) -> list[list[str]]:
    """Parts by height: a part stands one row above the highest part that it imports."""

    @functools.cache
    def height(part: str) -> int:
        return max((1 + height(target) for target in edges[part]), default=0)

    rows: list[list[str]] = [[] for _ in range(1 + max(map(height, edges)))]
    for part in sorted(edges):
        rows[height(part)].append(part)
    return rows


def direct_edges(edges: Edges) -> list[tuple[str, str]]:
    """Edges that no other path implies: few enough to draw."""

    @functools.cache
    def reachable(part: str) -> frozenset[str]:
        return frozenset(edges[part]).union(*(reachable(target) for target in edges[part]))

    return [
        (part, target)
        for part in sorted(edges)
        for target in sorted(edges[part])
        if not any(target in reachable(other) for other in edges[part] - {target})
    ]


def draw(edges: Edges) -> str:
    """An SVG with a box for each part, and lines down to what it imports."""
    rows = levels(edges)
    width = max(len(row) for row in rows) * (WIDTH + GAP) + GAP
    height = len(rows) * ROW
    corner = {}
    for level, row in enumerate(rows):
        left = (width - len(row) * (WIDTH + GAP) + GAP) / 2
        for place, part in enumerate(row):
            corner[part] = (left + place * (WIDTH + GAP), height - (level + 1) * ROW + 20)
    lines = [
        f'<line x1="{corner[a][0] + WIDTH / 2}" y1="{corner[a][1] + HEIGHT}" '
        f'x2="{corner[b][0] + WIDTH / 2}" y2="{corner[b][1]}" stroke="#80808080"/>'
        for a, b in direct_edges(edges)
    ]
    boxes = [
        f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="5" fill="#00968833" '
        f'stroke="#009688"/><text x="{x + WIDTH / 2}" y="{y + 22}" text-anchor="middle" '
        f'font-size="14" fill="currentColor">{part}</text>'
        for part, (x, y) in corner.items()
    ]
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="Parts of the package in '
        f'layers" style="max-width:100%;height:auto">{"".join(lines + boxes)}</svg>'
    )


def table(edges: Edges) -> str:
    """What each part imports, from the top down."""
    rows = [part for row in reversed(levels(edges)) for part in row]
    lines = [f"| `{part}` | {', '.join(sorted(edges[part])) or 'nothing'} |" for part in rows]
    return "\n".join(["| part | imports |", "|---|---|", *lines])


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by mkdocs for every page."""
    if MARK not in markdown:
        return markdown
    edges = read_edges()
    return markdown.replace(MARK, f"{draw(edges)}\n\n{table(edges)}")
