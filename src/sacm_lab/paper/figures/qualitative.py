"""Figure: what raw and sacm forecast for the same test windows.

The pair is the paper's (WPMixer on Synth-12 at level 0.1, the longest horizon) or the nearest to
it. The windows are those where sacm gains most, gains the median, and loses most: the paper shows
four from the middle of the baseline's errors.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sacm.experiments.examples import forecast_examples
from sacm.reports.figures import ForecastExample
from sacm.reports.style import INK, MUTED, colours, house_style
from sacm.training.run import Run
from sacm_lab.paper.figures.panels import DASHES, footnote, sheet
from sacm_lab.paper.figures.run_folders import alike, finished_runs, noise_level, title, unsuitable

COMPARED = tuple(DASHES)
LEVEL, BACKBONE = 0.1, "WPMixer"


def pair(runs: list[Run]) -> dict[str, Run] | None:
    """Raw and sacm on Synth-12 that differ in nothing else, the nearest to the paper's."""
    synthetic = [run for run in runs if noise_level(run.settings.data) is not None]
    found = [
        {run.settings.strategy: run for run in group} for group in alike(synthetic, "strategy")
    ]
    pairs = [{name: each[name] for name in COMPARED} for each in found if {*COMPARED} <= {*each}]
    return min(pairs, key=_distance, default=None)


def _distance(runs: dict[str, Run]) -> tuple[float, bool, bool, int, int]:
    settings = runs["raw"].settings
    level, horizon = noise_level(settings.data), settings.horizon
    assert level is not None
    small = settings.size != "paper"
    return abs(level - LEVEL), settings.backbone != BACKBONE, small, -horizon, settings.seed


def draw(folder: Path) -> Figure:
    """Context, clean truth and both forecasts; a panel for each of three windows."""
    runs = pair(finished_runs(folder, "forecasting"))
    if runs is None:
        raise unsuitable(folder, "pair of raw and sacm on Synth-12", "synth12")
    examples, looked_at = forecast_examples(runs, runs["raw"].load_data())
    chosen = colours(COMPARED)
    with house_style():
        figure, panels = sheet(len(examples), 1, height=1.7 * len(examples) + 0.8)
        for axes, example in zip(panels[:, 0], examples, strict=True):
            _panel(axes, example, chosen)
        panels[-1, 0].set_xlabel("steps from the forecast's start")
        lines = {
            "input": Line2D([], [], color=MUTED),
            "clean truth": Line2D([], [], color=INK, linewidth=1.6),
        }
        lines |= {n: Line2D([], [], color=c, linestyle=DASHES[n]) for n, c in chosen.items()}
        figure.legend(lines.values(), lines.keys(), loc="outside upper left", ncols=4)
        settings = runs["raw"].settings
        footnote(
            figure,
            f"{title(runs['raw'])} on {settings.data}, {settings.input_len} to {settings.horizon} "
            f"steps, seed {settings.seed}; looked for among {looked_at:,} test windows.",
        )
    return figure


def _panel(axes: Axes, example: ForecastExample, chosen: dict[str, str]) -> None:
    future = np.arange(len(example.truth))
    axes.plot(np.arange(-len(example.history), 0), example.history, color=MUTED, linewidth=0.9)
    axes.plot(future, example.truth, color=INK, linewidth=1.6)
    for strategy, values in example.forecasts.items():
        axes.plot(future, values, color=chosen[strategy], linestyle=DASHES[strategy])
    axes.axvline(-0.5, color=MUTED, linewidth=0.7, linestyle=":")
    axes.set_xmargin(0.01)
    errors = ", ".join(f"{name} {error:.3f}" for name, error in example.errors.items())
    change = 100 * (example.errors["sacm"] / example.errors["raw"] - 1)
    which = "higher" if change > 0 else "lower"
    axes.set_title(f"{example.label} window: MAE {errors} ({abs(change):.1f} % {which})")
