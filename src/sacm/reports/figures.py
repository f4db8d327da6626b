"""One function a figure; each takes plain values and returns a matplotlib `Figure`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from sacm.reports import style

if TYPE_CHECKING:
    import pandas as pd

_PANELS = 6  # channels or series of a prediction that are drawn
WIDE = 6.0  # inches; fits a telephone


@style.house_style()
def count_figure(values: Sequence[float], title: str, label: str) -> Figure:
    """Draw a number for each step, from 1 on."""
    figure, (axes,) = style.canvas(height=2.2)
    steps = np.arange(1, len(values) + 1)
    axes.plot(steps, values, color=style.KEPT, marker="o", markersize=2.5)
    axes.set(title=title, xlabel=label, xlim=(0.5, len(values) + 0.5))
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True, min_n_ticks=1))
    style.number_axis(axes)
    return figure


@style.house_style()
def forecast_figure(history: pd.DataFrame, forecast: pd.DataFrame, repaired: np.ndarray) -> Figure:
    """Draw forecasts after the end of their history, one panel a channel, at most six.

    Times or row numbers are the index. The forecast may have bounds in columns such as
    `load_lower_80`; `repaired` `[L, C]` marks what was repaired or missing in the last rows.
    """
    figure, panels = _panels(list(map(str, history)))
    past = history.index.to_numpy()
    joined = np.concatenate([past[-1:], forecast.index])  # the forecast begins at the last value
    entries: dict[str, Any] = {"measured": style.INK, "forecast": style.KEPT}
    for place, (column, axes) in enumerate(panels.items()):
        values = history[column].to_numpy(dtype=float)
        axes.plot(past, values, color=style.INK, linewidth=1)
        lower = f"{column}_lower_"
        ends = [str(name).removeprefix(lower) for name in forecast if str(name).startswith(lower)]
        for end in ends:
            bounds = forecast[f"{lower}{end}"], forecast[f"{column}_upper_{end}"]
            low, high = (np.append(values[-1], bound) for bound in bounds)
            axes.fill_between(joined, low, high, color=style.KEPT, alpha=0.18, linewidth=0)
            layers = sum(float(other) >= float(end) for other in ends)
            shade = 1 - (1 - 0.18) ** layers  # a narrow band lies on the wider ones
            entries[f"{end} % interval"] = Rectangle((0, 0), 1, 1, color=style.KEPT, alpha=shade)
        axes.plot(joined, np.append(values[-1], forecast[column]), color=style.KEPT, linewidth=1.4)
        if repaired[:, place].any():
            marked = np.zeros(len(values), bool)
            marked[-len(repaired) :] = repaired[-len(values) :, place]
            dots: Any = {"linestyle": "", "color": style.ALARM, "markersize": 4, "marker": "."}
            axes.plot(past[marked], np.nan_to_num(values[marked], nan=np.nanmin(values)), **dots)
            entries["repaired for the forecast"] = Line2D([], [], **dots)
    _label_below(panels, past)
    style.key(figure, entries)
    return figure


@style.house_style()
def truth_figure(
    forecasts: np.ndarray, truth: np.ndarray, where: np.ndarray, columns: Sequence[str]
) -> Figure:
    """Draw forecasts and truth `[N, H, C]` at times or rows `[N, H]`, one panel a channel."""
    figure, panels = _panels(columns)
    marker = "." if where.shape[1] == 1 else ""
    for place, axes in enumerate(panels.values()):
        axes.plot(where.ravel(), truth[..., place].ravel(), color=style.INK, linewidth=1)
        axes.plot(where.T, forecasts[..., place].T, color=style.KEPT, linewidth=1.1, marker=marker)
    _label_below(panels, where)
    style.key(figure, {"measured": style.INK, "forecast": style.KEPT})
    return figure


@style.house_style()
def alarm_figure(scores: pd.DataFrame, values: pd.DataFrame) -> Figure:
    """Draw at most five channels and the score of every row, with a mark at every alarm."""
    where, alarms = values.index.to_numpy(), scores["alarm"].to_numpy() > 0
    title = f"anomaly score: {int(alarms.sum()):,} alarms in {len(scores):,} rows"
    lines = {str(name): values[name] for name in values.columns[: _PANELS - 1]}
    lines[title] = scores["score"]
    figure, panels = _panels(list(lines), height=1.1)
    for name, axes in panels.items():
        series = lines[name].to_numpy(dtype=float)
        rows = style.thin_out_range(series, 1500)
        axes.plot(where[rows], series[rows], color=style.MUTED, linewidth=0.8)
        axes.plot(where[alarms], series[alarms], ".", color=style.ALARM, markersize=3.5)
    dashes: Any = {"color": style.INK, "linestyle": "--"}
    panels[title].axhline(scores["threshold"].iloc[0], linewidth=0.9, **dashes)
    _label_below(panels, where)
    alarm = Line2D([], [], color=style.ALARM, marker=".", linestyle="")
    style.key(figure, {"alarm": alarm, "threshold": Line2D([], [], **dashes)})
    return figure


def _panels(columns: Sequence[str], *, height: float = 1.6) -> tuple[Figure, dict[str, Axes]]:
    """A figure with one panel a column, at most six."""
    shown = list(columns)[:_PANELS]
    figure, panels = style.canvas(len(shown), height=0.8 + height * len(shown), width=WIDE)
    for axes, column in zip(panels, shown, strict=True):
        axes.set_title(column, parse_math=False)
        style.number_axis(axes)
    return figure, dict(zip(shown, panels, strict=True))


def _label_below(panels: Mapping[str, Axes], where: np.ndarray) -> None:
    """Times or rows below the last of the panels that share them."""
    *_, last = panels.values()
    for axes in panels.values():
        style.date_axis(axes, np.issubdtype(where.dtype, np.datetime64))
        axes.label_outer()
        axes.xaxis.get_offset_text().set_visible(axes is last)
