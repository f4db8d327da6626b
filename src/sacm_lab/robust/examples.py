"""One test window under every fault: forecasts of a raw network, and of the same one protected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from sacm.data.corrupt import corrupt_windows
from sacm.data.datasets import ForecastingData
from sacm.experiments.checks.faults import fit_guard_of
from sacm.experiments.grid import JobGroup
from sacm.experiments.jobs import load_data
from sacm.quality.protect import protect, unprotect
from sacm.tasks.forecasting import forecast
from sacm.training.run import Run
from sacm_lab.robust.faults import TESTED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEVERITY = 0.8
_SHOWN = 48  # steps of the input


@dataclass(frozen=True, eq=False)
class Example:
    """One channel of one window under one fault, as z-scores.

    Attributes:
        clean: The input `[L]` as it was.
        broken: The input with the fault.
        target: What came, `[H]`.
        raw: The forecast from the broken input.
        protected: The forecast of the same network behind a guard.
    """

    clean: np.ndarray
    broken: np.ndarray
    target: np.ndarray
    raw: np.ndarray
    protected: np.ndarray


def first_raw_run(groups: Sequence[JobGroup], runs: Path) -> Run | None:
    """A finished run of raw forecasting, if there is one."""
    for group in groups:
        for job in group.jobs:
            run = Run(runs / job.run_id)
            own = job.settings
            if own.task == "forecasting" and own.strategy == "raw" and run.finished:
                return run
    return None


def make_examples(run: Run) -> dict[str, Example]:
    """The middle test window under every fault, in the channel that the fault changes most."""
    data: ForecastingData = load_data(run.settings.data, "forecasting", run.settings.split)
    windows = run.task.windows(run.settings, data, scaler=run.scaler)
    batch = windows.test.batch([len(windows.test) // 2])
    broken = [
        corrupt_windows(batch.x, kind, SEVERITY, seed=number) for number, kind in enumerate(TESTED)
    ]
    x = torch.cat(broken)
    stamps = None if batch.stamps is None else batch.stamps.expand(len(x), *batch.stamps.shape[1:])
    wide = batch._replace(x=x, stamps=stamps)
    model = run.load_model()
    with torch.inference_mode():
        raw = forecast(model, wide, x)
        protected = forecast(protect(model, fit_guard_of(run, data)), wide, x)
    unprotect(model)
    examples = {}
    for number, kind in enumerate(TESTED):
        c = int((x[number] - batch.x[0]).abs().mean(0).argmax())
        parts = (batch.x[0], x[number], batch.y[0], raw[number], protected[number])
        examples[kind] = Example(*(part[:, c].numpy() for part in parts))
    return examples


def draw_examples(examples: dict[str, Example]) -> Figure:
    """A panel for each fault."""
    from matplotlib.figure import Figure as NewFigure
    from matplotlib.lines import Line2D

    from sacm.display.figure_style import house_style, key
    from sacm.display.palette import INK, MUTED, SERIES

    with house_style():
        figure = NewFigure(
            figsize=(6.4, 1.5 * ((len(examples) + 1) // 2) + 0.4), layout="constrained"
        )
        panels = figure.subplots((len(examples) + 1) // 2, 2, squeeze=False).ravel()
        for axes, (kind, one) in zip(panels, examples.items(), strict=False):
            shown = min(_SHOWN, len(one.clean))
            before = np.arange(-shown, 0)
            after = np.arange(len(one.target))
            axes.plot(before, one.clean[-shown:], color=MUTED, linestyle=":")
            axes.plot(before, one.broken[-shown:], color=INK, linewidth=0.8)
            axes.plot(after, one.target, color=MUTED)
            axes.plot(after, one.raw, color=SERIES[0])
            axes.plot(after, one.protected, color=SERIES[1])
            axes.axvline(-0.5, color=MUTED, linewidth=0.6)
            axes.set_title(kind)
        for axes in panels[len(examples) :]:
            axes.set_visible(False)
        others = {
            "healthy input": Line2D([], [], color=MUTED, linestyle=":"),
            "broken input": Line2D([], [], color=INK, linewidth=0.8),
            "what came": Line2D([], [], color=MUTED),
        }
        key(figure, {"raw": SERIES[0], "protected": SERIES[1]}, others=others)
    return figure
