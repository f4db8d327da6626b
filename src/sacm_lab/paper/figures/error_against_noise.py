"""Figure: the error on Synth-12 against its noise level, raw and sacm, a column for each backbone.

A point averages the horizons and seeds that both strategies have finished at every level shown.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sacm.reports.style import colours, house_style
from sacm.training.run import Run
from sacm_lab.paper.figures.panels import DASHES, MARKERS, footnote, sheet
from sacm_lab.paper.figures.run_folders import (
    alike,
    finished_runs,
    has_results,
    noise_level,
    titles,
    unsuitable,
)

COMPARED = tuple(DASHES)
# The batch size is the preset's choice for a horizon, not the user's for a run.
AVERAGED = ("data", "strategy", "horizon", "seed", "batch_size")
LABELS = {"mse": "MSE (z-scored)", "mse_raw": "MSE (raw units)"}


@dataclass(frozen=True)
class NoiseCurves:
    """Mean errors [levels] by metric and strategy."""

    title: str
    levels: tuple[float, ...]
    horizons: tuple[int, ...]
    seeds: tuple[int, ...]
    errors: dict[str, dict[str, np.ndarray]]


def noise_curves(runs: list[Run]) -> list[NoiseCurves]:
    """One curve for each backbone with finished pairs of forecasting runs."""
    wanted = [
        run
        for run in runs
        if run.settings.strategy in COMPARED
        and noise_level(run.settings.data) is not None
        and has_results(run, *LABELS)
    ]
    groups = alike(wanted, *AVERAGED)
    named = titles([group[0] for group in groups], *AVERAGED)
    found = [_curves(group, title) for group, title in zip(groups, named, strict=True)]
    return [curves for curves in found if curves is not None]


def _curves(runs: list[Run], title: str) -> NoiseCurves | None:
    cells: defaultdict[float, dict[tuple[str, int, int], Run]] = defaultdict(dict)
    for run in runs:
        settings = run.settings
        level = noise_level(settings.data)
        assert level is not None
        cells[level][settings.strategy, settings.horizon, settings.seed] = run
    paired = {
        level: {(h, s) for _, h, s in found if all((each, h, s) in found for each in COMPARED)}
        for level, found in cells.items()
    }
    levels = sorted(level for level, cell in paired.items() if cell)
    common = sorted(set.intersection(*(paired[level] for level in levels))) if levels else []
    if not common:
        return None
    errors = {
        metric: {
            strategy: np.array(
                [
                    np.mean([cells[level][strategy, h, s].row[metric] for h, s in common])
                    for level in levels
                ]
            )
            for strategy in COMPARED
        }
        for metric in LABELS
    }
    horizons, seeds = sorted({h for h, _ in common}), sorted({s for _, s in common})
    return NoiseCurves(title, tuple(levels), tuple(horizons), tuple(seeds), errors)


def draw(folder: Path) -> Figure:
    """Draw z-scored errors above and raw units below; noisier data make z-scored errors smaller."""
    found = noise_curves(finished_runs(folder, "forecasting"))
    if not found:
        raise unsuitable(folder, "pairs of raw and sacm on Synth-12", "synth12")
    chosen = colours(COMPARED)
    columns = min(len(found), 3)
    bands = -(-len(found) // columns)
    with house_style():
        figure, panels = sheet(2 * bands, columns, height=3.6 * bands + 0.8)
        for place, curves in enumerate(found):
            band, column = divmod(place, columns)
            for offset, (metric, label) in enumerate(LABELS.items()):
                axes = panels[2 * band + offset, column]
                _panel(axes, curves, metric, chosen)
                if column == 0:
                    axes.set_ylabel(label)
            panels[2 * band, column].set_title(curves.title)
            panels[2 * band + 1, column].set_xlabel("noise level σ")
        for place in range(len(found), bands * columns):
            band, column = divmod(place, columns)
            panels[2 * band, column].set_axis_off()
            panels[2 * band + 1, column].set_axis_off()
        lines = {
            name: Line2D([], [], color=colour, linestyle=DASHES[name], marker=marker)
            for (name, colour), marker in zip(chosen.items(), MARKERS, strict=False)
        }
        figure.legend(
            lines.values(), lines.keys(), loc="outside upper left", ncols=2, handlelength=3
        )
        footnote(figure, _averages(found))
    return figure


def _panel(axes: Axes, curves: NoiseCurves, metric: str, chosen: dict[str, str]) -> None:
    for (strategy, values), marker in zip(curves.errors[metric].items(), MARKERS, strict=False):
        axes.plot(
            curves.levels,
            values,
            color=chosen[strategy],
            linestyle=DASHES[strategy],
            marker=marker,
            markersize=4,
        )
    axes.set_xticks(curves.levels)


def _averages(found: list[NoiseCurves]) -> str:
    """What the points average, once for panels that average the same."""
    panels: defaultdict[str, list[str]] = defaultdict(list)
    for curves in found:
        several = "s" if len(curves.horizons) > 1 else ""
        horizons = ", ".join(map(str, curves.horizons))
        seeds = f"{len(curves.seeds)} seed{'s' if len(curves.seeds) > 1 else ''}"
        panels[f"horizon{several} {horizons}; {seeds}."].append(" ".join(curves.title.split()))
    if len(panels) == 1:
        return f"Every point averages {next(iter(panels))}"
    return " ".join(f"{', '.join(names)}: {text}" for text, names in panels.items())
