"""Every strategy of a protocol in one picture: what it gains over raw, place by place."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sacm.display.figure_style import canvas, house_style, plain
from sacm.display.palette import INK, KEPT, LEFT, MUTED, PAPER
from sacm.experiments.named.findings import Findings, Overall
from sacm.experiments.named.pairs import own_gains, pairs
from sacm.metrics.catalogue import metric
from sacm.reports.named.gains import format_gain, unit
from sacm_lab.robust.findings import RobustFindings
from sacm_lab.robust.protocols import RANDOM, REFERENCES
from sacm_lab.robust.tables import places_of

_LINE, _FRAME = 0.24, 0.7  # inches: of a strategy, and around all of them
_WIDTH = 6.4


class _Row(NamedTuple):
    """One strategy: its gain over all pairs and the mean gain of every place it was run in."""

    overall: Overall
    gain: float
    places: list[float]


def gain_figure(found: RobustFindings) -> Figure:
    """A line for each strategy, the best above, references below: a dot is a place.

    Args:
        found: What the runs of a protocol say.

    Returns:
        Gains in the protocol's first metric; the bar is the mean over all pairs with its 95 %
        interval.
    """
    rows = _rows(found.findings)
    name = found.findings.metrics[0]
    with house_style():
        figure, (axes,) = canvas(height=_FRAME + _LINE * len(rows), width=_WIDTH)
        axes.axvline(0, color=MUTED, linewidth=0.8)
        for line, row in enumerate(rows):
            _draw(axes, -line, row)
        axes.set_yticks([-line for line in range(len(rows))])
        axes.set_yticklabels([plain(label) for label in _labels(rows)])
        for label, row in zip(axes.get_yticklabels(), rows, strict=True):
            label.set_color(MUTED if row.overall.strategy in REFERENCES else INK)
        axes.set_ylim(0.6 - len(rows), 0.6)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel(f"gain over raw in {metric(name).label}, {unit(name)}")
    return figure


def gain_caption(found: RobustFindings) -> str:
    """What the picture says, for those who do not see it too."""
    findings = found.findings
    rows = _rows(findings)
    listed = ", ".join(
        f"{row.overall.strategy} {format_gain(row.gain, row.overall.metric)}" for row in rows
    )
    return (
        f"Gain over raw in {metric(findings.metrics[0]).label}; a dot is one data set with one "
        "network and one fault, its mean over seeds; the bar is the mean over all pairs with its "
        f"95 % interval: {listed}."
    )


def _rows(findings: Findings) -> list[_Row]:
    """Strategies that were run, the best first, then references; random scores are left out."""
    name = findings.metrics[0]
    found = []
    for one in findings.overall:
        if one.metric != name or not one.n or one.gain is None or one.strategy == RANDOM:
            continue
        gains = (
            own_gains(name, pairs(groups, findings.baseline, one.strategy, name))
            for _, groups in places_of(findings)
        )
        found.append(_Row(one, one.gain, [float(np.mean(each)) for each in gains if each]))
    return sorted(found, key=lambda row: (row.overall.strategy in REFERENCES, -row.gain))


def _labels(rows: list[_Row]) -> list[str]:
    """Names of strategies, with the number of places where others were run in more."""
    most = max((len(row.places) for row in rows), default=0)
    return [
        row.overall.strategy
        + (f" ({len(row.places)} of {most} places)" if len(row.places) < most else "")
        for row in rows
    ]


def _draw(axes: Axes, height: float, row: _Row) -> None:
    quiet = row.overall.strategy in REFERENCES
    colour = MUTED if quiet else (KEPT if row.gain > 0 else LEFT)
    ends = row.overall.interval
    if ends is not None and ends.low is not None and ends.high is not None:
        axes.plot(
            [ends.low, ends.high],
            [height, height],
            color=colour,
            alpha=0.35,
            linewidth=7,
            solid_capstyle="butt",
        )
    axes.plot(
        row.places, [height] * len(row.places), "o", color=colour, markersize=4.2,
        markeredgecolor=PAPER, markeredgewidth=0.6,
    )  # fmt: skip
    axes.plot(row.gain, height, marker="|", color=INK, markersize=10, markeredgewidth=1.6)
