"""Figures of predictions: forecasts after their history, scores with alarms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure

from sacm.display.figure_style import canvas, house_style, thin_out
from sacm.display.palette import ALARM, INK, KEPT, MUTED

if TYPE_CHECKING:
    import pandas as pd

_PANELS = 6  # channels or series that are drawn
_WIDE = 7.5  # inches


def forecast_figure(
    history: pd.DataFrame, forecast: pd.DataFrame, columns: list[str], time: str | None
) -> Figure:
    """Draw forecasts after the end of their history, one panel a channel.

    Args:
        history: The last rows before the forecast.
        forecast: The forecast, with bounds in columns such as `load_lower_80` if there are any.
        columns: The channels to draw, at most six of which are.
        time: The column of times in both; None where rows have none.

    Returns:
        The figure; bands are the intervals, the widest the palest.
    """
    shown = columns[:_PANELS]
    with house_style():
        figure, panels = canvas(len(shown), height=0.8 + 1.5 * len(shown), width=_WIDE)
        past, ahead = _axis(history, time, 0), _axis(forecast, time, len(history))
        for axes, column in zip(panels, shown, strict=True):
            axes.plot(past, history[column], color=INK, linewidth=1)
            for lower, upper in _bands(forecast, column):
                axes.fill_between(ahead, lower, upper, color=KEPT, alpha=0.18, linewidth=0)
            axes.plot(ahead, forecast[column], color=KEPT, linewidth=1.4)
            axes.set_title(column, parse_math=False)
            _date_axis(axes, past)
    return figure


def alarm_figure(frame: pd.DataFrame, time: str | None) -> Figure:
    """Draw the scores of rows, the threshold, and a mark at every alarm."""
    with house_style():
        figure, (axes,) = canvas(height=2.6, width=_WIDE)
        scores = frame["score"].to_numpy()
        where = _axis(frame, time, 0)
        edges, highest = thin_out(scores, 1500)
        axes.plot(where[edges], highest, color=INK, linewidth=0.9)
        axes.axhline(float(frame["threshold"].iloc[0]), color=MUTED, linestyle="--", linewidth=0.9)
        alarms = frame["alarm"].to_numpy() > 0
        axes.scatter(where[alarms], scores[alarms], s=9, color=ALARM, zorder=3)
        axes.set_title(f"{int(alarms.sum()):,} alarms in {len(frame):,} rows")
        axes.set_ylabel("anomaly score")
        _date_axis(axes, where)
    return figure


def _axis(frame: pd.DataFrame, time: str | None, first: int) -> np.ndarray[Any, Any]:
    """Times, where they are dates, or numbers of rows."""
    import pandas as pd

    if time is not None and time in frame:
        stamps = pd.to_datetime(frame[time].astype(str), errors="coerce", utc=True, format="mixed")
        if stamps.notna().all():
            return stamps.dt.tz_localize(None).to_numpy()
    return np.arange(first + 1, first + len(frame) + 1)


def _date_axis(axes: Axes, where: np.ndarray[Any, Any]) -> None:
    if np.issubdtype(where.dtype, np.datetime64):
        locator = AutoDateLocator(maxticks=12)  # with fewer it finds no step for five days
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    else:
        axes.set_xlabel("row")


def _bands(forecast: pd.DataFrame, column: str) -> list[tuple[Any, Any]]:
    """Pairs of bounds of a channel, in the order of the columns."""
    start = f"{column}_lower_"
    ends = [name.removeprefix(start) for name in forecast.columns if str(name).startswith(start)]
    return [(forecast[f"{start}{end}"], forecast[f"{column}_upper_{end}"]) for end in ends]
