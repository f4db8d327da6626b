"""One function a figure; each takes plain values and returns a matplotlib `Figure`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from sacm.reports.style import (
    ALARM,
    INK,
    KEPT,
    MUTED,
    WIDTH,
    canvas,
    colours,
    count_axis,
    date_axis,
    house_style,
    key,
    number_axis,
    plain,
    thin_out_range,
)

if TYPE_CHECKING:
    import pandas as pd

Histories = Mapping[str, Sequence[Sequence[Mapping[str, str]]]]  # strategy -> runs -> history rows
_CELLS = 12  # classes up to which a confusion matrix has its counts written in
_PANELS = 6  # channels or series of a prediction that are drawn
WIDE = 7.5  # inches


@house_style()
def paired_dots(
    values: Mapping[str, Sequence[float]], title: str, *, levels: Mapping[str, float] | None = None
) -> Figure:
    """One line a seed, one column a strategy: every pair, not only their mean.

    `values` are by strategy, in the same order of seeds; `levels` is what needs no network, by
    name, such as naive forecasts and random scores.
    """
    names, chosen = list(values), colours(list(values))
    table = np.array([list(row) for row in values.values()], dtype=float)  # [strategies, seeds]
    figure, (axes,) = canvas()
    for heights in table.T:
        axes.plot(heights, color=MUTED, linewidth=0.8, zorder=1)
        axes.scatter(range(len(heights)), heights, c=list(chosen.values()), s=26, zorder=3)
    for place, row in enumerate(table):
        if np.isfinite(row).any():
            mean = float(np.nanmean(row))
            axes.hlines(mean, place - 0.16, place + 0.16, colors=INK, linewidth=2, zorder=4)
    for name, level in (levels or {}).items():
        axes.axhline(level, color=MUTED, linestyle="--", linewidth=0.9)
        axes.annotate(name, (-0.48, level), color=MUTED, va="bottom")
    crowded = max(map(len, names)) * len(names) > 56  # 56 letters fit below the columns
    axes.set_xticks(range(len(names)), names, rotation=20 if crowded else 0)
    axes.set(xlim=(-0.5, len(names) - 0.5), title=title)
    axes.grid(axis="x", visible=False)
    return figure


@house_style()
def training_curves(histories: Histories, column: str) -> Figure:
    """One column of history.csv for every run; a ring marks the best epoch of a validation."""
    chosen = colours(list(histories))
    best = np.nanargmax if column == "val_accuracy" else np.nanargmin
    figure, (axes,) = canvas(height=2.5)
    for strategy, runs in histories.items():
        look: Any = {"color": chosen[strategy], "linewidth": 1, "marker": "o", "markersize": 2}
        for rows in runs:
            values = [float(row[column]) for row in rows]
            axes.plot(range(1, len(values) + 1), values, alpha=0.8, **look)
            if column.startswith("val_"):
                at = int(best(values))
                ring: Any = {"facecolors": "none", "edgecolors": chosen[strategy]}
                axes.scatter([at + 1], [values[at]], s=34, zorder=3, **ring)
    title = column.replace("val_", "validation ").replace("train_", "training ")
    axes.set_title(title.replace("mae", "MAE").replace("mse", "MSE"))
    count_axis(axes, "epoch")
    key(figure, chosen)
    return figure


@house_style()
def windows_with_rates(windows: np.ndarray, rates: np.ndarray, colour: str) -> Figure:
    """Eight training windows `[N, L, C]` from the lowest dropout rate `[N]` to the highest."""
    ranks = np.linspace(0, len(rates) - 1, 8).round().astype(int)
    chosen = np.argsort(rates, kind="stable")[ranks]
    figure = Figure(figsize=(WIDTH, 3.2), layout="constrained")
    for axes, place in zip(figure.subplots(2, 4, sharex=True).flat, chosen, strict=True):
        axes.plot(windows[place], color=colour, alpha=0.6, linewidth=0.9)
        axes.set_title(f"rate {rates[place]:.2f}")
    figure.supxlabel("step of the window")
    figure.supylabel("channels, z-scored")
    return figure


@house_style()
def confusion_matrix(counts: np.ndarray, classes: Sequence[str], title: str) -> Figure:
    """Rows are true classes; a cell is as dark as its share of the row."""
    size = len(classes)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    figure, (axes,) = canvas(height=WIDTH * 0.85)
    shades = LinearSegmentedColormap.from_list("", [to_rgba(KEPT, 0), to_rgba(KEPT, 0.75)])
    axes.pcolormesh(range(size), range(size), shares, cmap=shades, vmin=0, vmax=1)
    for true, guess in np.argwhere(counts).tolist() if size <= _CELLS else []:
        axes.text(guess, true, str(counts[true, guess]), ha="center", va="center")
    ticks = range(0, size, max(1, size // 20))
    named = [plain(shorten(str(classes[tick]), 12, placeholder="…")) for tick in ticks]
    axes.set_xticks(ticks, named, rotation=90 if sum(map(len, named)) > 40 else 0)
    axes.set_yticks(ticks, named)
    axes.set(aspect="equal", title=title, xlabel="predicted class", ylabel="true class")
    axes.invert_yaxis()
    axes.grid(visible=False)
    return figure


@house_style()
def forecast_figure(
    history: pd.DataFrame,
    forecast: pd.DataFrame,
    columns: list[str],
    time: str | None,
    *,
    repaired: np.ndarray[Any, Any] | None = None,
    width: float = WIDE,
) -> Figure:
    """Draw forecasts after the end of their history, one panel a channel, at most six.

    Args:
        history: The last rows before the forecast; NaN where nothing was measured.
        forecast: The forecast, with bounds in columns such as `load_lower_80` if there are any.
        columns: The channels to draw.
        time: The column of times in both; None where rows have none.
        repaired: Which of the last `L` values were repaired or missing, `[L, channels]`.
        width: In inches.
    """
    figure, panels, shown = _panels(columns, width)
    past, ahead = _axis(history, time, 0), _axis(forecast, time, len(history))
    joined = np.concatenate([past[-1:], ahead])  # the forecast begins at the last value
    entries: dict[str, Any] = {"measured": INK, "forecast": KEPT}
    for place, (axes, column) in enumerate(zip(panels, shown, strict=True)):
        values = history[column].to_numpy(dtype=float)
        axes.plot(past, values, color=INK, linewidth=1)
        start = values[-1:]
        bands = _bands(forecast, column)
        for share, lower, upper in bands:
            low, high = np.concatenate([start, lower]), np.concatenate([start, upper])
            axes.fill_between(joined, low, high, color=KEPT, alpha=0.18, linewidth=0)
            layers = sum(float(other) >= float(share) for other, *_ in bands)
            shade = 1 - (1 - 0.18) ** layers  # a narrow band lies on the wider ones
            entries[f"{share} % interval"] = Rectangle((0, 0), 1, 1, color=KEPT, alpha=shade)
        middle = np.concatenate([start, forecast[column]])
        axes.plot(joined, middle, color=KEPT, linewidth=1.4)
        if repaired is not None and repaired[:, place].any():
            marked = np.zeros(len(values), bool)
            marked[-len(repaired) :] = repaired[-len(values) :, place]
            dots: Any = {"linestyle": "", "color": ALARM, "markersize": 4}
            seen = marked & np.isfinite(values)
            axes.plot(past[seen], values[seen], marker=".", **dots)
            gaps = past[marked & ~np.isfinite(values)]
            axes.plot(gaps, np.full(len(gaps), np.nanmin(values)), marker="|", **dots)
            entries["repaired for the forecast"] = Line2D([], [], marker=".", **dots)
        if np.nanmin(values) >= 0 > axes.get_ylim()[0]:
            axes.set_ylim(bottom=0)
    _label_below(panels, past)
    key(figure, entries)
    return figure


@house_style()
def truth_figure(
    forecasts: np.ndarray[Any, Any],
    truth: np.ndarray[Any, Any],
    where: np.ndarray[Any, Any],
    columns: Sequence[str],
    *,
    width: float = WIDE,
) -> Figure:
    """Draw consecutive forecasts `[N, H, C]` over the truth, one panel a channel, at most six.

    `where` holds times or row numbers `[N, H]`; the truth is NaN where nothing was measured.
    """
    figure, panels, _ = _panels(columns, width)
    for place, axes in enumerate(panels):
        axes.plot(where.ravel(), truth[..., place].ravel(), color=INK, linewidth=1)
        for times, values in zip(where, forecasts[..., place], strict=True):
            look: Any = {"marker": "."} if len(values) == 1 else {}
            axes.plot(times, values, color=KEPT, linewidth=1.1, **look)
    _label_below(panels, where)
    key(figure, {"measured": INK, "forecast": KEPT})
    return figure


@house_style()
def step_figure(errors: Sequence[float | None], title: str) -> Figure:
    """Draw the error of each step ahead."""
    values = np.array(errors, dtype=float)
    figure, (axes,) = canvas(height=2.2)
    axes.plot(np.arange(1, len(values) + 1), values, color=KEPT, marker="o", markersize=2.5)
    axes.set_title(title)
    axes.set_ylim(bottom=0)
    count_axis(axes, "steps ahead")
    number_axis(axes)
    return figure


@house_style()
def alarm_figure(
    frame: pd.DataFrame,
    time: str | None,
    values: pd.DataFrame | None = None,
    *,
    width: float = WIDE,
) -> Figure:
    """Draw at most five channels and the score of every row, with a mark at every alarm.

    `frame` has columns score, threshold and alarm, and perhaps a column of times.
    """
    where, alarms = _axis(frame, time, 0), frame["alarm"].to_numpy() > 0
    title = f"anomaly score: {int(alarms.sum()):,} alarms in {len(frame):,} rows"
    lines = {} if values is None else {str(c): values[c] for c in values.columns[: _PANELS - 1]}
    lines[title] = frame["score"]
    figure, panels, _ = _panels(list(lines), width, height=1.1)
    for axes, column in zip(panels, lines.values(), strict=True):
        series = column.to_numpy(dtype=float)
        rows = thin_out_range(series, 1500)
        axes.plot(where[rows], series[rows], color=MUTED, linewidth=0.8)
        axes.plot(where[alarms], series[alarms], ".", color=ALARM, markersize=3.5)
    threshold = float(frame["threshold"].iloc[0])
    panels[-1].axhline(threshold, color=INK, linestyle="--", linewidth=0.9)
    _label_below(panels, where)
    alarm = Line2D([], [], color=ALARM, marker=".", linestyle="")
    key(figure, {"alarm": alarm, "threshold": Line2D([], [], color=INK, linestyle="--")})
    return figure


def _panels(
    columns: Sequence[str], width: float, *, height: float = 1.6
) -> tuple[Figure, list[Axes], list[str]]:
    """A figure with one panel a column, at most six, and the columns that have one."""
    shown = list(columns)[:_PANELS]
    figure, panels = canvas(len(shown), height=0.8 + height * len(shown), width=width)
    for axes, column in zip(panels, shown, strict=True):
        axes.set_title(column, parse_math=False)
        number_axis(axes)
    return figure, panels, shown


def _axis(frame: pd.DataFrame, time: str | None, first: int) -> np.ndarray[Any, Any]:
    """Times, where they are dates, or numbers of rows."""
    import pandas as pd

    if time is not None and time in frame:
        stamps = pd.to_datetime(frame[time].astype(str), errors="coerce", utc=True, format="mixed")
        if stamps.notna().all():
            return stamps.dt.tz_localize(None).to_numpy()
    return np.arange(first + 1, first + len(frame) + 1)


def _label_below(panels: Sequence[Axes], where: np.ndarray[Any, Any]) -> None:
    """Times or rows below the last of the panels that share them."""
    for axes in panels:
        date_axis(axes, np.issubdtype(where.dtype, np.datetime64))
        axes.label_outer()
    for axes in panels[:-1]:
        axes.xaxis.get_offset_text().set_visible(False)


def _bands(forecast: pd.DataFrame, column: str) -> list[tuple[str, Any, Any]]:
    """Share and bounds of each interval of a channel, in the order of the columns."""
    start = f"{column}_lower_"
    ends = [name.removeprefix(start) for name in forecast.columns if str(name).startswith(start)]
    return [(end, forecast[f"{start}{end}"], forecast[f"{column}_upper_{end}"]) for end in ends]
