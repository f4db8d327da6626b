"""How every figure looks: small enough to be read at the width of a phone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from sacm.display.palette import GRID, INK, MUTED

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
    columns = 4 if max(map(len, lines)) <= 10 else 2
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


def plain(text: str) -> str:
    """Text as it stands: matplotlib would read dollar signs as formulas."""
    return text.replace("$", r"\$")
