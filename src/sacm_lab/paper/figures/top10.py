"""Figure: real series rebuilt from the 10 % largest of their Fourier coefficients."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter

from sacm.reports.style import INK, KEPT, LEFT, MUTED, house_style, thin_out_range
from sacm_lab.paper.figures.modes import Modes, correlation, dominant
from sacm_lab.paper.figures.panels import footnote, sheet
from sacm_lab.paper.figures.real_series import real_series

SHARE = 0.1
SHOWN = 500  # steps


def top_share(values: np.ndarray) -> tuple[Modes, float]:
    """A whole series [T], rebuilt, and its correlation with what was rebuilt of it."""
    modes = dominant(values, SHARE)
    return modes, correlation(values, modes.rebuilt)


def draw() -> Figure:
    """One row a set: the first channel with its reconstruction, and the amplitude spectrum."""
    series = real_series()
    with house_style():
        count = len(series.values)
        figure, panels = sheet(count, 2, height=1.25 * count + 1.0, widths=(1.5, 1))
        for (time, frequency), (name, values) in zip(panels, series.values.items(), strict=True):
            channel = values[:, 0]
            modes, r = top_share(channel)
            time.plot(channel[:SHOWN], color=MUTED, linewidth=1.4)
            time.plot(modes.rebuilt[:SHOWN], color=KEPT, linestyle="--")
            column = series.columns[name][0]
            column = f"channel {column}" if column.isdigit() else column
            time.set_title(f"{name}, {column}: r = {r:.3f}")
            _spectrum(frequency, modes, len(channel))
        panels[-1, 0].set_xlabel(f"step (the first {SHOWN})")
        panels[-1, 1].set_xlabel("cycles a step")
        lines = {
            "series": Line2D([], [], color=MUTED),
            "rebuilt from 10 %": Line2D([], [], color=KEPT, linestyle="--"),
            "amplitude": Line2D([], [], color=LEFT),
            "retention threshold": Line2D([], [], color=INK, linestyle=":"),
        }
        figure.legend(lines.values(), lines.keys(), loc="outside upper left", ncols=4)
        footnote(
            figure,
            "First channel of each set; coefficients are chosen and r is taken over the whole "
            f"series. {series.note}",
        )
    return figure


def _spectrum(axes: Axes, modes: Modes, length: int) -> None:
    amplitude = modes.amplitude[1:]
    places = thin_out_range(amplitude, 350)
    axes.plot((places + 1) / length, amplitude[places], color=LEFT, linewidth=0.8)
    axes.axhline(modes.threshold, color=INK, linewidth=0.9, linestyle=":")
    axes.set_yscale("log")
    axes.yaxis.set_minor_formatter(NullFormatter())
    energy = amplitude**2
    axes.set_title(f"kept: {energy[modes.kept[1:]].sum() / energy.sum():.1%} of the energy")
