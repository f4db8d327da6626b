"""How figures look: colours, which are those of pages too, and matplotlib settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

INK, MUTED, GRID, ALARM = "#1c2126", "#6a737c", "#d8dce0", "#c8402f"
SERIES = ("#b5541c", "#1b6cae", "#3b7d3f", "#7d52a8", "#96740a", "#a83a62")
KEPT, LEFT = SERIES[1], SERIES[0]
WIDTH = 4.0  # inches

_LOOK: Any = {
    "font.size": 8.2,
    "axes.titlesize": "medium",
    "axes.titlelocation": "left",
    **dict.fromkeys(("axes.titlecolor", "axes.labelcolor", "text.color"), INK),
    **dict.fromkeys(("xtick.labelcolor", "ytick.labelcolor"), INK),
    **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), MUTED),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
    "axes.grid": True,
    "grid.color": GRID,
    "lines.linewidth": 1.2,
}
house_style = partial(matplotlib.rc_context, _LOOK)  # a context, or a decorator of a figure


def canvas(
    rows: int = 1, *, height: float = 2.4, width: float = WIDTH
) -> tuple[Figure, list[Axes]]:
    """A figure with panels below each other; no window system is touched."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, list(figure.subplots(rows, 1, squeeze=False)[:, 0])


def key(figure: Figure, entries: Mapping[str, Any]) -> None:
    """A legend above the panels: names with their colours, or with what is drawn for them."""
    lines = {
        name: Line2D([], [], color=entry) if isinstance(entry, str) else entry
        for name, entry in entries.items()
    }
    room = int(12 * figure.get_figwidth() / (max(map(len, lines)) + 5))  # 12 letters an inch
    ncols = min(6, max(1, room))
    figure.legend(lines.values(), lines.keys(), loc="outside upper left", ncols=ncols)


def thin_out_range(values: np.ndarray, bins: int) -> np.ndarray:
    """Rows of the lowest and the highest value of each of at most `bins` stretches, ascending."""
    if len(values) <= 2 * bins:
        return np.arange(len(values))
    low, high = (np.where(np.isnan(values), end, values) for end in (np.inf, -np.inf))
    parts = np.array_split(np.arange(len(values)), bins)
    return np.unique([p[at] for p in parts for at in (low[p].argmin(), high[p].argmax())])


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

    def short(value: float, _: Any) -> str:
        for least, unit, name in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
            if abs(value) >= least:
                return f"{value / unit:.4g}{name}"
        return f"{value:.4g}"

    axes.yaxis.set_major_locator(MaxNLocator(nbins=ticks))
    axes.yaxis.set_major_formatter(FuncFormatter(short))


def plain(text: str) -> str:
    """Text as it stands: matplotlib would read dollar signs as formulas."""
    return text.replace("$", r"\$")


def colours(strategies: Sequence[str]) -> dict[str, str]:
    """A colour for each strategy; more strategies than colours begin again."""
    return {name: SERIES[number % len(SERIES)] for number, name in enumerate(strategies)}
