"""Gains over a baseline by cell, strategies side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from sacm.reports.style import INK, canvas, colours, house_style, key


@house_style()
def gain_figure(
    gains: Mapping[str, Mapping[str, Sequence[float]]], *, unit: str = "%", title: str = ""
) -> Figure:
    """Gain over the baseline by cell, strategies side by side: a dot a seed, a bar their mean."""
    strategies = list(dict.fromkeys(name for row in gains.values() for name in row))
    chosen, step = colours(strategies), 0.8 / max(len(strategies), 1)
    height = 1.4 + 0.13 * len(gains) * (len(strategies) + 1)
    figure, (axes,) = canvas(height=height, width=7.5)
    for row, cell in enumerate(gains.values()):
        for place, strategy in enumerate(strategies):
            values = np.asarray(cell.get(strategy, ()), dtype=float)
            if len(values):
                y, colour = row - 0.4 + step * (place + 0.5), chosen[strategy]
                axes.barh(y, values.mean(), height=0.9 * step, alpha=0.45, color=colour)
                axes.plot(values, np.full(len(values), y), ".", markersize=4, color=colour)
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.set_yticks(range(len(gains)), list(gains))
    axes.set_ylim(len(gains) - 0.5, -0.5)
    axes.set_xlabel(f"gain over the baseline, {unit}")
    axes.set_title(title)
    axes.grid(axis="y", visible=False)
    key(figure, chosen)
    return figure
