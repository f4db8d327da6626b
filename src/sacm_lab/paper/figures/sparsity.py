"""Figures: corrupted signals, their spectra, and what the dominant coefficients rebuild."""

from __future__ import annotations

from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sacm.core.config import Detrend
from sacm.reports.style import INK, KEPT, LEFT, MUTED, house_style
from sacm_lab.paper.figures.modes import Modes, correlation, dominant
from sacm_lab.paper.figures.panels import footnote, sheet
from sacm_lab.paper.figures.signal_families import Signal
from sacm_lab.paper.figures.signals import CORRUPTIONS, RATE, corrupt_signal

# The composite's share is the paper's; for the families it states none, and a sweep over 2.5 Hz
# fills 25 of the 500 coefficients.
SHARES: dict[Signal, float] = {
    "composite": 0.01,
    "periodic": 0.05,
    "trend": 0.05,
    "chirp": 0.05,
    "am": 0.05,
}
DRIFTING: tuple[Signal, ...] = ("composite", "trend")
SHOWN = 10.0  # Hz


def rebuilt(kind: Signal, corruption: str) -> tuple[np.ndarray, np.ndarray, Modes]:
    """The clean signal [T], the corrupted one, and its dominant coefficients.

    Signals with a drift are detrended by least squares first; the others have none to remove.
    """
    clean, worse = corrupt_signal(kind, corruption)
    detrend: Detrend = "ols" if kind in DRIFTING else "none"
    return clean, worse, dominant(worse, SHARES[kind], detrend=detrend)


def draw(kind: Signal) -> Figure:
    """One row a corruption: input, amplitude spectrum, reconstruction against the clean signal."""
    with house_style():
        figure, panels = sheet(len(CORRUPTIONS), 3, height=5.4)
        for row, (corruption, title) in zip(panels, CORRUPTIONS.items(), strict=True):
            clean, worse, modes = rebuilt(kind, corruption)
            seconds = np.arange(len(clean)) / RATE
            row[0].plot(seconds, worse, color=MUTED, linewidth=0.7)
            row[0].set_title(title)
            _spectrum(row[1], modes, len(clean))
            row[2].plot(seconds, clean, color=INK, linewidth=2)
            row[2].plot(seconds, modes.rebuilt, color=KEPT, linewidth=0.9)
            row[2].set_title(f"rebuilt: r = {correlation(modes.rebuilt, clean):.3f}")
        detrended = " after detrending" if kind in DRIFTING else ""
        panels[0, 1].set_title(f"amplitude{detrended}")
        for axes, label in zip(panels[-1], ("seconds", "Hz", "seconds"), strict=True):
            axes.set_xlabel(label)
        _key(figure)
        count = int(modes.kept[1:].sum())
        footnote(
            figure,
            f"{count} of {len(modes.kept) - 1} coefficients are kept ({SHARES[kind]:.0%}); spectra "
            f"are shown up to {SHOWN:g} of {RATE / 2:g} Hz. r is Pearson's, with the clean signal.",
        )
    return figure


def _spectrum(axes: Axes, modes: Modes, length: int) -> None:
    hertz = np.fft.rfftfreq(length, 1 / RATE)
    height = 2 * modes.amplitude / length
    shown = (hertz > 0) & (hertz <= SHOWN)  # the mean is always kept, and nothing to look at
    floor = height[shown].min() / 2
    for chosen, colour, marker in ((~modes.kept, LEFT, "."), (modes.kept, KEPT, "o")):
        places = shown & chosen
        axes.vlines(hertz[places], floor, height[places], color=colour, linewidth=0.8)
        axes.plot(hertz[places], height[places], marker, color=colour, markersize=3)
    axes.axhline(2 * modes.threshold / length, color=INK, linewidth=0.8, linestyle=":")
    axes.set_yscale("log")
    axes.set_ylim(bottom=max(floor, height.max() * 1e-4))


def _key(figure: Figure) -> None:
    lines = {
        "corrupted input": Line2D([], [], color=MUTED),
        "kept": Line2D([], [], color=KEPT, marker="o", markersize=4),
        "left": Line2D([], [], color=LEFT, marker=".", markersize=4),
        "retention threshold": Line2D([], [], color=INK, linestyle=":"),
        "clean signal": Line2D([], [], color=INK, linewidth=2),
        "rebuilt": Line2D([], [], color=KEPT, linewidth=0.9),
    }
    figure.legend(lines.values(), lines.keys(), loc="outside upper left", ncols=6)


composite = partial(draw, "composite")
periodic = partial(draw, "periodic")
trend = partial(draw, "trend")
chirp = partial(draw, "chirp")
am = partial(draw, "am")
