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

from sacm.reports.palette import GRID, INK, MUTED

WIDTH = 4.8  # inches

_LOOK: Any = {
    "font.family": "sans-serif",
    "font.size": 9.0,
    "axes.titlesize": 9.5,
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
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.3,
    "figure.facecolor": "white",
    "savefig.dpi": 150,
}


@contextmanager
def look() -> Iterator[None]:
    """Draw in the house style; nothing of it stays behind."""
    with matplotlib.rc_context(_LOOK):
        yield


def canvas(
    rows: int = 1, *, height: float = 2.7, width: float = WIDTH
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
    figure.legend(lines.values(), lines.keys(), loc="outside upper left", ncols=min(4, len(lines)))


def thinned(values: np.ndarray, bins: int = 700) -> tuple[np.ndarray, np.ndarray]:
    """The largest value of each of at most `bins` stretches, with the rows where they begin."""
    edges = np.linspace(0, len(values), min(bins, len(values)) + 1).astype(int)[:-1]
    return edges, np.fmax.reduceat(values, edges)
