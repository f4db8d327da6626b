"""Dropout rates of training windows: some windows with theirs; how all are distributed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sacm.core.config import SACMConfig
from sacm.core.mapper import RateMapper
from sacm.core.scorer import SpectralScorer
from sacm.data.batches import WindowBatches
from sacm.files import read_weights
from sacm.inject.sites import MODULATOR
from sacm.reports.style import INK, KEPT, WIDTH, house_style
from sacm.training.run import BEST_FILE, Run
from sacm_lab.paper.figures.panels import footnote, sheet
from sacm_lab.paper.figures.run_folders import alike, finished_runs, titles, unsuitable

PANELS, COLUMNS, BINS = 9, 3, 30
WINDOWS = 1024  # training windows of which rates are computed


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


def window_rates(run: Run, data: Any) -> tuple[np.ndarray, np.ndarray]:
    """Training windows `[N, L, C]` of a run of sacm, in the order of training, and rates `[N]`."""
    settings, windows = run.settings, run.task.windows(run.settings, data).train
    weights = read_weights(run.folder / BEST_FILE)
    scorer, mapper = SpectralScorer(data.channels, SACMConfig()), RateMapper(SACMConfig())
    for prefix, module in ((f"{MODULATOR}.scorer.", scorer), (f"{MODULATOR}.mapper.", mapper)):
        module.load_state_dict(
            {k.removeprefix(prefix): v for k, v in weights.items() if k.startswith(prefix)}
        )
    size = min(settings.batch_size, len(windows))
    batches = WindowBatches(windows, size, shuffle=True, drop_last=True, seed=settings.seed)
    seen: list[torch.Tensor] = []
    for batch in batches:
        seen.append(run.strategy.inputs(batch.x))
        if len(seen) * size >= WINDOWS:
            break
    with torch.no_grad():
        rates = [mapper(scorer(x).scores) for x in seen]  # a batch by itself, as in training
    return torch.cat(seen).numpy(), torch.cat(rates).numpy()


@house_style()
def windows_with_rates(windows: np.ndarray, rates: np.ndarray, colour: str) -> Figure:
    """Draw eight training windows `[N, L, C]` from the lowest dropout rate `[N]` to the highest."""
    ranks = np.linspace(0, len(rates) - 1, 8).round().astype(int)
    chosen = np.argsort(rates, kind="stable")[ranks]
    figure = Figure(figsize=(WIDTH, 3.2), layout="constrained")
    for axes, place in zip(figure.subplots(2, 4, sharex=True).flat, chosen, strict=True):
        axes.plot(windows[place], color=colour, alpha=0.6, linewidth=0.9)
        axes.set_title(f"rate {rates[place]:.2f}")
    figure.supxlabel("step of the window")
    figure.supylabel("channels, z-scored")
    return figure
