"""How figures and pages look: colours with a light and a dark value, and matplotlib settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

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
WIDTH = 4.0  # inches

_LOOK: Any = {
    "font.family": "sans-serif",
    "font.size": 8.2,
    "axes.titlesize": 8.8,
    "axes.labelsize": 8.2,
    "axes.titlelocation": "left",
    "axes.titlecolor": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.fontsize": 8.2,
    "legend.handlelength": 1.4,
    "legend.columnspacing": 1.2,
    "lines.linewidth": 1.2,
    "figure.facecolor": "white",
}


@contextmanager
def house_style() -> Iterator[None]:
    """Draw in the house style; nothing of it stays behind."""
    with matplotlib.rc_context(_LOOK):
        yield


def canvas(
    rows: int = 1, *, height: float = 2.4, width: float = WIDTH
) -> tuple[Figure, list[Axes]]:
    """A figure with panels below each other; no window system is touched."""
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, 1, squeeze=False)
    return figure, list(axes[:, 0])


def key(
    figure: Figure, colours: dict[str, str], *, others: dict[str, Line2D] | None = None
) -> None:
    """A legend above the panels, for lines that several panels share."""
    lines = {name: Line2D([], [], color=colour) for name, colour in colours.items()}
    lines |= others or {}
    room = 12 * figure.get_figwidth() / (max(map(len, lines)) + 5)  # letters in an inch
    columns = max(1, min(6, int(room)))
    figure.legend(lines.values(), lines.keys(), loc="outside upper left", ncols=columns)


def epoch_axis(axes: Axes, last: int) -> None:
    """Whole epochs, with room for a single one."""
    axes.set_xlim(0.5, last + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True, min_n_ticks=1))
    axes.set_xlabel("epoch")


def thin_out(values: np.ndarray, bins: int = 700) -> tuple[np.ndarray, np.ndarray]:
    """The largest value of each of at most `bins` stretches, with the rows where they begin."""
    edges = np.linspace(0, len(values), min(bins, len(values)) + 1).astype(int)[:-1]
    return edges, np.fmax.reduceat(values, edges)


def thin_out_range(values: np.ndarray, bins: int) -> np.ndarray:
    """Rows of the lowest and the highest value of each of at most `bins` stretches, ascending."""
    if len(values) <= 2 * bins:
        return np.arange(len(values))
    length = -(-len(values) // bins)
    padded = np.pad(values.astype(float), (0, -len(values) % length), constant_values=np.nan)
    parts = padded.reshape(-1, length)
    starts = np.arange(len(parts)) * length
    low = np.where(np.isnan(parts), np.inf, parts).argmin(axis=1)
    high = np.where(np.isnan(parts), -np.inf, parts).argmax(axis=1)
    return np.unique(np.minimum(np.concatenate([starts + low, starts + high]), len(values) - 1))


def date_axis(axes: Axes, timed: bool = True) -> None:
    """Label times in as few letters as they need, or say that positions are rows."""
    if not timed:
        axes.set_xlabel("row")
        return
    locator = AutoDateLocator(minticks=3, maxticks=9)  # fewer leave some ranges without ticks
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))


def number_axis(axes: Axes, ticks: int = 5) -> None:
    """A few numbers on the y axis, large ones in thousands, millions or billions."""
    axes.yaxis.set_major_locator(MaxNLocator(nbins=ticks))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short_number(value)))


def short_number(value: float) -> str:
    """A number in few letters: 12k, 1.5M.

    Example:
        >>> short_number(1_500_000), short_number(0.25)
        ('1.5M', '0.25')
    """
    for least, unit, name in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if abs(value) >= least:
            return f"{value / unit:.4g}{name}"
    return f"{value:.4g}"


def plain(text: str) -> str:
    """Text as it stands: matplotlib would read dollar signs as formulas."""
    return text.replace("$", r"\$")


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
