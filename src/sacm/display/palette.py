"""Colours of all figures and pages: one name, a light and a dark value."""

from __future__ import annotations

from collections.abc import Sequence

INK, MUTED, GRID, PAPER = "#1c2126", "#6a737c", "#d8dce0", "#fdfdfc"
SERIES = ("#b5541c", "#1b6cae", "#3b7d3f", "#7d52a8", "#96740a", "#a83a62")
KEPT, LEFT, ALARM = SERIES[1], SERIES[0], "#c8402f"

# A figure is drawn in the light colours; a page replaces each by a variable that knows both.
_NAMES = {
    INK: "ink",
    MUTED: "muted",
    GRID: "grid",
    PAPER: "paper",
    ALARM: "alarm",
    **{colour: f"series-{number}" for number, colour in enumerate(SERIES)},
}
_DARK = {
    INK: "#e6e8ea",
    MUTED: "#98a1aa",
    GRID: "#363d44",
    PAPER: "#14181c",
    ALARM: "#f0705e",
    **dict(
        zip(
            SERIES,
            ("#ee9257", "#66b2f0", "#7cc47f", "#bb97e0", "#d3b24a", "#e683a8"),
            strict=True,
        )
    ),
}


def colours(strategies: Sequence[str]) -> dict[str, str]:
    """A colour for each strategy; more strategies than colours begin again."""
    return {name: SERIES[number % len(SERIES)] for number, name in enumerate(strategies)}


def variables(*, dark: bool) -> str:
    """The colours as CSS custom properties."""
    chosen = {colour: _DARK[colour] if dark else colour for colour in _NAMES}
    return "".join(f"--{_NAMES[colour]}:{value};" for colour, value in chosen.items())


def apply_theme(svg: str) -> str:
    """An SVG whose colours follow the page."""
    for colour, name in _NAMES.items():
        svg = svg.replace(colour, f"var(--{name})")
    return svg
