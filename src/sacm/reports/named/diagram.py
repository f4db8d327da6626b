"""A critical-difference diagram: average ranks, and bars over strategies not told apart."""

from __future__ import annotations

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sacm.display.figure_style import canvas, house_style
from sacm.display.palette import INK, MUTED, SERIES
from sacm.experiments.critical_difference import CriticalDifference
from sacm.reports import number_format

# All in inches.
_RULER = 2.6
_LETTER = 0.078  # a wide one
_LINE = 0.2  # from one name to the next
_LONGEST = 30  # letters of a name


def rank_diagram(ranks: CriticalDifference) -> Figure:
    """Best on the left; names hang below their ranks, the better half on the left."""
    half = math.ceil(len(ranks.names) / 2)
    bars = len(ranks.cliques)
    height = 0.55 + _LINE * (half + 0.6) + 0.1 * bars
    margin = 0.5 + _LETTER * min(_LONGEST, max(map(len, ranks.names)))
    with house_style():
        figure, (axes,) = canvas(height=height, width=_RULER + 2 * margin)
        # One unit downwards is one line of names.
        top = 0.5 * bars + 0.8
        _ruler(axes, len(ranks.names), margin=margin / _RULER)
        for place, (name, rank) in enumerate(zip(ranks.names, ranks.average_ranks, strict=True)):
            left = place < half
            line = place if left else len(ranks.names) - 1 - place
            _name(axes, name, rank, -top - line, left=left, last=len(ranks.names))
        at = dict(zip(ranks.names, ranks.average_ranks, strict=True))
        for place, clique in enumerate(ranks.cliques):
            ends = [at[name] for name in clique]
            wider = 0.03 * (len(ranks.names) - 1)
            axes.plot(
                [min(ends) - wider, max(ends) + wider],
                [-0.5 * (place + 1)] * 2,
                color=SERIES[1],
                linewidth=3.5,
                solid_capstyle="round",
            )
        axes.set_ylim(-top - half + 0.4, 1.4)
    return figure


def rank_caption(ranks: CriticalDifference) -> str:
    """What the diagram says, for those who do not see it too."""
    order = ", ".join(
        f"{name} {rank:.2f}" for name, rank in zip(ranks.names, ranks.average_ranks, strict=True)
    )
    test = ranks.friedman
    friedman = f"Friedman's test: {number_format.p_equals(test.p_value)}"
    if test.p_value is None:
        friedman = f"No Friedman test: {test.reason}"
    return (
        f"Average ranks over {number_format.count(ranks.n, 'problem')}, 1 is best: {order}. "
        f"{friedman}. "
        f"Bars join strategies that cannot be told apart ({ranks.method}, α = {ranks.alpha:g})."
    )


def _ruler(axes: Axes, last: int, *, margin: float) -> None:
    axes.set_xlim(1 - margin * (last - 1), last + margin * (last - 1))
    axes.axis("off")
    axes.plot([1, last], [0, 0], color=MUTED, linewidth=0.8)
    for rank in range(1, last + 1):
        axes.plot([rank, rank], [0, 0.25], color=MUTED, linewidth=0.8)
        axes.text(rank, 0.4, str(rank), ha="center", va="bottom", color=INK)


def _name(axes: Axes, name: str, rank: float, height: float, *, left: bool, last: int) -> None:
    end = 1 - 0.04 * (last - 1) if left else last + 0.04 * (last - 1)
    axes.plot([rank, rank, end], [0, height, height], color=MUTED, linewidth=0.8)
    axes.plot(rank, 0, marker="o", markersize=3, color=INK)
    shown = name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"
    text = f"{shown} {rank:.2f} " if left else f" {rank:.2f} {shown}"
    side = "right" if left else "left"
    # Outside of the layout, which would shrink the ruler to make room for the margin once more.
    drawn = axes.text(end, height, text, ha=side, va="center", color=INK, parse_math=False)
    drawn.set_in_layout(False)
