"""Figure: how the dropout rates of the training windows are distributed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sacm.core.config import SACMConfig
from sacm.experiments.compare import window_rates
from sacm.reports.style import INK, KEPT, house_style
from sacm.training.run import Run
from sacm_lab.paper.figures.panels import footnote, sheet
from sacm_lab.paper.figures.run_folders import alike, finished_runs, titles, unsuitable

PANELS, COLUMNS, BINS = 9, 3, 30


def representatives(runs: list[Run]) -> list[Run]:
    """Of runs of the method that differ in seed and horizon alone, the first; by data set."""
    method = sorted(
        (run for run in runs if run.settings.strategy == "sacm"),
        key=lambda run: (run.settings.horizon, run.settings.seed),
    )
    firsts = [group[0] for group in alike(method, "seed", "horizon", "batch_size")]
    return sorted(firsts, key=lambda run: (run.settings.data, run.settings.backbone))


def draw(folder: Path) -> Figure:
    """A histogram for each data set and backbone, with mean and deviation."""
    found = representatives(finished_runs(folder, "forecasting"))
    if not found:
        raise unsuitable(folder, "forecasting run of sacm", "rates")
    shown = found[:PANELS]
    columns = min(len(shown), COLUMNS)
    rows = -(-len(shown) // columns)
    with house_style():
        figure, panels = sheet(rows, columns, height=2.3 * rows + 0.6)
        named = titles(shown, "data", "seed", "horizon", "batch_size")
        for axes, run, title in zip(panels.flat, shown, named, strict=False):
            _, rates = window_rates(run, run.load_data())
            _histogram(axes, rates)
            numbers = f"mean {rates.mean():.3f}, deviation {rates.std():.3f}"
            settings = run.settings
            axes.set_title(f"{settings.data}, {title}\nH = {settings.horizon}: {numbers}")
        for axes in panels.flat[len(shown) :]:
            axes.set_axis_off()
        for axes in panels[-1]:
            axes.set_xlabel("dropout rate")
        left_out = len(found) - len(shown)
        more = f" {left_out} more runs are not shown." if left_out else ""
        footnote(
            figure,
            "About 1,000 training windows, scored and mapped as trained, batch by batch; line: "
            f"the mean; band: one standard deviation to each side.{more}",
        )
    return figure


def _histogram(axes: Axes, rates: np.ndarray) -> None:
    bounds = SACMConfig()
    mean, spread = float(rates.mean()), float(rates.std())
    axes.axvspan(mean - spread, mean + spread, color=KEPT, alpha=0.15, linewidth=0)
    axes.hist(rates, bins=BINS, range=(bounds.p_min, bounds.p_max), color=KEPT)
    axes.axvline(mean, color=INK, linewidth=1.2)
    axes.grid(axis="x", visible=False)
