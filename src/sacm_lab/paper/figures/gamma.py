"""Figure: the error against the initial gamma of the rate mapper, at each level of Synth-12."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sacm.reports.style import SERIES, house_style
from sacm.strategies.registry import canonical
from sacm.strategies.sacm import SACM
from sacm.training.run import Run
from sacm_lab.paper.figures.error_against_noise import AVERAGED
from sacm_lab.paper.figures.panels import MARKERS, footnote, sheet
from sacm_lab.paper.figures.run_folders import (
    alike,
    finished_runs,
    has_results,
    noise_level,
    titles,
    unsuitable,
)


@dataclass(frozen=True)
class GammaTable:
    """Mean errors [gammas, levels] of one backbone; NaN where nothing is finished."""

    title: str
    gammas: tuple[float, ...]
    levels: tuple[float, ...]
    mse: np.ndarray


def gamma_of(run: Run) -> float | None:
    """The gamma of a run that is the method with nothing else changed."""
    strategy = run.strategy
    if not isinstance(strategy, SACM):
        return None
    alone = canonical(f"sacm(gamma={strategy.gamma})") == run.settings.strategy
    return strategy.gamma if alone else None


def gamma_tables(runs: list[Run]) -> list[GammaTable]:
    """One a backbone that has two gammas; a cell averages the horizons and seeds all cells have."""
    wanted = [
        run
        for run in runs
        if noise_level(run.settings.data) is not None
        and gamma_of(run) is not None
        and has_results(run, "mse")
    ]
    groups = alike(wanted, *AVERAGED)
    named = titles([group[0] for group in groups], *AVERAGED)
    tables = [_table(group, title) for group, title in zip(groups, named, strict=True)]
    return [table for table in tables if len(table.gammas) > 1 and np.isfinite(table.mse).any()]


def _table(runs: list[Run], title: str) -> GammaTable:
    cells: defaultdict[tuple[float, float], dict[tuple[int, int], float]] = defaultdict(dict)
    for run in runs:
        gamma, level = gamma_of(run), noise_level(run.settings.data)
        error, horizon = run.row["mse"], run.settings.horizon
        assert gamma is not None
        assert level is not None
        assert error is not None
        cells[gamma, level][horizon, run.settings.seed] = error
    gammas = sorted({gamma for gamma, _ in cells})
    levels = sorted({level for _, level in cells})
    common = set.intersection(*(set(cell) for cell in cells.values()))
    table = np.full((len(gammas), len(levels)), np.nan)
    for (gamma, level), cell in cells.items():
        if common:
            mean = np.mean([cell[key] for key in sorted(common)])
            table[gammas.index(gamma), levels.index(level)] = mean
    return GammaTable(title, tuple(gammas), tuple(levels), table)


def draw(folder: Path) -> Figure:
    """Left: against the noise level, a line for each gamma. Right: grouped by gamma."""
    tables = gamma_tables(finished_runs(folder, "forecasting"))
    if not tables:
        raise unsuitable(folder, "runs of sacm with two values of gamma on Synth-12", "gamma")
    with house_style():
        figure, panels = sheet(len(tables), 2, height=2.7 * len(tables) + 0.5)
        for (by_level, by_gamma), table in zip(panels, tables, strict=True):
            _lines(by_level, table.levels, table.mse, [f"γ = {g:g}" for g in table.gammas])
            by_level.set_xticks(table.levels)
            by_level.set_xlabel("noise level σ")
            by_level.set_ylabel("MSE (z-scored)")
            by_level.set_title(f"(a) {table.title}")
            places = tuple(map(float, range(len(table.gammas))))
            _lines(by_gamma, places, table.mse.T, [f"σ = {s:g}" for s in table.levels])
            by_gamma.set_xticks(places, [f"{g:g}" for g in table.gammas])
            by_gamma.set_xlim(-0.3, places[-1] + 0.3)
            by_gamma.set_xlabel("initial γ")
            by_gamma.set_title(f"(b) {table.title}")
        footnote(
            figure,
            "Errors are scaled by the noisy training rows: equal errors look smaller as σ grows.",
        )
    return figure


def _lines(axes: Axes, x: tuple[float, ...], rows: np.ndarray, labels: list[str]) -> None:
    for place, (values, label) in enumerate(zip(rows, labels, strict=True)):
        marker, colour = MARKERS[place % len(MARKERS)], SERIES[place % len(SERIES)]
        axes.plot(x, values, color=colour, marker=marker, markersize=4, label=label)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
