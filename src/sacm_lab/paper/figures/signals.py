"""Figure: what structure and what corruption look like."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from sacm.data.corrupt import corrupt
from sacm.reports.style import KEPT, LEFT, house_style
from sacm_lab.paper.figures.panels import WIDTH
from sacm_lab.paper.figures.signal_families import Signal, signal

RATE = 100.0  # samples a second
LEVEL, SEED = 0.3, 0
FAMILIES: dict[Signal, str] = {
    "periodic": "periodic",
    "trend": "trend and season",
    "chirp": "chirp",
    "am": "amplitude modulation",
}
CORRUPTIONS: dict[str, str] = {
    "gaussian": "Gaussian noise",
    "student_t": "heavy-tailed spikes",
    "missing": "missing values",
}


def corrupt_signal(kind: Signal, corruption: str) -> tuple[np.ndarray, np.ndarray]:
    """A clean signal [T], and the same under one corruption."""
    clean = signal(kind, rate=RATE)
    return clean, corrupt(clean, corruption, LEVEL, seed=SEED)


def residuals(kind: Signal = "periodic") -> dict[str, np.ndarray]:
    """What each corruption adds to a signal [T]."""
    pairs = {each: corrupt_signal(kind, each) for each in CORRUPTIONS}
    return {each: worse - clean for each, (clean, worse) in pairs.items()}


def draw() -> Figure:
    """Clean families above; below, what each corruption adds to the periodic one."""
    with house_style():
        figure = Figure(figsize=(WIDTH, 3.6), layout="constrained")
        grid = figure.add_gridspec(2, 12)
        for place, (kind, title) in enumerate(FAMILIES.items()):
            axes = figure.add_subplot(grid[0, 3 * place : 3 * place + 3])
            values = signal(kind, rate=RATE)
            axes.plot(np.arange(len(values)) / RATE, values, color=KEPT)
            axes.set_title(title)
        for place, (each, added) in enumerate(residuals().items()):
            axes = figure.add_subplot(grid[1, 4 * place : 4 * place + 4])
            time = np.arange(len(added)) / RATE
            axes.plot(time, added, color=LEFT, linewidth=0.7)
            if each == "missing":
                lost = added != 0
                axes.plot(time[lost], added[lost], ".", color=LEFT, markersize=3)
            axes.set_title(CORRUPTIONS[each])
            axes.set_xlabel("seconds")
        figure.axes[0].set_ylabel("signal")
        figure.axes[len(FAMILIES)].set_ylabel("residual")
    return figure
