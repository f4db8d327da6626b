"""Figure: what raw and sacm forecast for the same test windows.

The pair is the paper's (WPMixer on Synth-12 at level 0.1, the longest horizon) or the nearest to
it. The windows are those where sacm gains most, gains the median, and loses most: the paper shows
four from the middle of the baseline's errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sacm.data.batches import beside_windows
from sacm.reports.style import INK, MUTED, colours, house_style
from sacm.tasks.base import evaluating, to_device
from sacm.training.run import Run
from sacm_lab.paper.figures.panels import DASHES, footnote, sheet
from sacm_lab.paper.figures.run_folders import alike, finished_runs, noise_level, title, unsuitable

COMPARED = tuple(DASHES)
LEVEL, BACKBONE = 0.1, "WPMixer"
MOST_WINDOWS = 2048  # test windows among which examples are looked for


class Example(NamedTuple):
    """One channel of one test window, in raw units."""

    label: str
    history: np.ndarray  # [L]
    truth: np.ndarray  # [H]
    forecasts: dict[str, np.ndarray]  # strategy -> [H]
    errors: dict[str, float]  # strategy -> mean absolute error, scaled


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


def forecast_examples(runs: Mapping[str, Run], data: Any) -> tuple[list[Example], int]:
    """The windows of largest, median and least gain of the last strategy over the first.

    Looks at every channel of at most 2048 evenly spread test windows, and says at how many.
    """
    first, *_, last = runs
    test = runs[first].task.windows(runs[first].settings, data).test
    chosen = np.linspace(0, len(test) - 1, min(MOST_WINDOWS, len(test))).astype(int)
    predictions = {name: _forecasts(run, test, chosen) for name, run in runs.items()}
    batch = test.batch(chosen)
    errors = {name: (each - batch.y).abs().mean(dim=1) for name, each in predictions.items()}
    order = (errors[first] - errors[last]).flatten().argsort(descending=True)  # [N * C]
    middle = order[len(order) // 2]
    picks = {"largest gain": order[0], "median gain": middle, "largest loss": order[-1]}

    def raw(values: torch.Tensor, window: int, channel: int) -> np.ndarray:
        return np.asarray(test.scaler.inverse(values[window : window + 1])[0, :, channel])

    examples = []
    for label, pick in picks.items():
        window, channel = divmod(int(pick), data.channels)
        examples.append(
            Example(
                label=label,
                history=raw(batch.x, window, channel),
                truth=raw(batch.y, window, channel),
                forecasts={n: raw(p, window, channel) for n, p in predictions.items()},
                errors={n: float(e[window, channel]) for n, e in errors.items()},
            )
        )
    return examples, len(chosen)


def _forecasts(run: Run, windows: Any, chosen: np.ndarray) -> torch.Tensor:
    model, strategy, parts = run.load_model(), run.strategy, []
    with evaluating(model) as device:
        for indices in np.array_split(chosen, max(1, len(chosen) // 256)):
            batch = to_device(windows.batch(indices), device)
            answer = model(strategy.inputs(batch.x), *beside_windows(batch))
            parts.append(answer.float().cpu())
    return torch.cat(parts).clone()  # out of inference mode


def _panel(axes: Axes, example: Example, chosen: dict[str, str]) -> None:
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
