"""One function a figure; each takes plain values and returns a matplotlib `Figure`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from sacm.display.figure_style import (
    WIDTH,
    canvas,
    epoch_axis,
    house_style,
    key,
    plain,
    thin_out,
)
from sacm.display.palette import ALARM, INK, KEPT, LEFT, MUTED, colours
from sacm.experiments.compare import Comparison
from sacm.metrics.catalogue import metric
from sacm.reports.figure_data import (
    AnomalyStrip,
    ForecastExample,
    RateSample,
    SpectralView,
    spectral_views,
)

Histories = Mapping[str, Sequence[Sequence[Mapping[str, str]]]]  # strategy -> runs -> history rows
_CELLS = 12  # classes up to which a confusion matrix has its counts written in


def paired_dots(comparison: Comparison, name: str) -> Figure:
    """One line a seed, one column a strategy: every pair, not only their mean."""
    known, chosen = metric(name), colours(comparison.strategies)
    with house_style():
        figure, (axes,) = canvas()
        for seed in comparison.seeds:
            values = [comparison.run(s, seed).row.get(name) for s in comparison.strategies]
            heights = [np.nan if value is None else value for value in values]
            axes.plot(heights, color=MUTED, linewidth=0.8, zorder=1)
            axes.scatter(range(len(heights)), heights, c=list(chosen.values()), s=26, zorder=3)
        for place, summary in enumerate(comparison.summaries):
            if name in summary.metrics:
                mean = summary.metrics[name].mean
                axes.hlines(mean, place - 0.16, place + 0.16, colors=INK, linewidth=2, zorder=4)
            if known.random is not None and known.random in summary.metrics:
                level = summary.metrics[known.random].mean
                axes.hlines(level, place - 0.3, place + 0.3, colors=ALARM, linestyles="--")
                axes.annotate("random", (place + 0.32, level), color=ALARM, va="center")
        names = ["\n".join(wrap(name, 14)) for name in comparison.strategies]
        axes.set_xticks(range(len(names)), names)
        axes.set_xlim(-0.5, len(comparison.strategies) - (0.5 if known.random is None else 0.3))
        better = "higher" if known.higher_is_better else "lower"
        axes.set_title(f"{known.label} ({better} is better)")
        axes.grid(axis="x", visible=False)
    return figure


def training_curves(histories: Histories, column: str) -> Figure:
    """One column of history.csv for every run; a ring marks the best epoch of a validation."""
    chosen = colours(list(histories))
    best = np.nanargmax if column == "val_accuracy" else np.nanargmin
    with house_style():
        figure, (axes,) = canvas(height=2.5)
        for strategy, runs in histories.items():
            for rows in runs:
                values = np.array([float(row[column]) for row in rows])
                epochs = np.arange(1, len(values) + 1)
                line: Any = {"linewidth": 1, "marker": "o", "markersize": 2}
                axes.plot(epochs, values, color=chosen[strategy], alpha=0.8, **line)
                if column.startswith("val_"):
                    at = int(best(values))
                    axes.scatter(
                        [epochs[at]],
                        [values[at]],
                        s=34,
                        facecolors="none",
                        edgecolors=chosen[strategy],
                        zorder=3,
                    )
        title = column.replace("val_", "validation ").replace("train_", "training ")
        axes.set_title(title.replace("mae", "MAE").replace("mse", "MSE"))
        epoch_axis(axes, max(len(rows) for runs in histories.values() for rows in runs))
        key(figure, chosen)
    return figure


def rates_by_epoch(histories: Histories) -> Figure:
    """Dropout rates of the windows: mean of every run, with deviation and range of the first."""
    chosen = colours(list(histories))
    with house_style():
        figure, (axes,) = canvas()
        for strategy, runs in histories.items():
            for number, rows in enumerate(runs):
                if "rate_mean" not in rows[0]:
                    continue
                epochs = np.arange(1, len(rows) + 1)
                mean, spread, low, high = (
                    np.array([float(row[f"rate_{name}"]) for row in rows])
                    for name in ("mean", "std", "min", "max")
                )
                axes.plot(epochs, mean, color=chosen[strategy], marker="o", markersize=2.5)
                if number == 0:
                    band: Any = {"color": chosen[strategy], "linewidth": 0, "step": "mid"}
                    # One step more at each end, so that a single epoch has a width.
                    around = np.arange(len(rows) + 2)
                    inner, outer = (mean - spread, mean + spread), (low, high)
                    for limits, alpha in ((inner, 0.25), (outer, 0.1)):
                        bottom, top = (np.pad(limit, 1, mode="edge") for limit in limits)
                        axes.fill_between(around, bottom, top, alpha=alpha, **band)
        axes.set_title("dropout rates of the training windows")
        axes.set_ylim(bottom=0)
        epoch_axis(axes, max(len(rows) for runs in histories.values() for rows in runs))
        with_rates = {s: c for s, c in chosen.items() if "rate_mean" in histories[s][0][0]}
        key(figure, with_rates)
    return figure


def rates_against_scores(sample: RateSample, colour: str) -> Figure:
    """Each training window's rate over its unreliability score."""
    with house_style():
        figure, (axes,) = canvas()
        axes.scatter(sample.scores, sample.rates, s=7, color=colour, alpha=0.45, linewidths=0)
        axes.set_title(f"{len(sample.scores):,} training windows")
        axes.set_xlabel("unreliability score")
        axes.set_ylabel("dropout rate")
        axes.set_ylim(bottom=0)
    return figure


def forecast_example(example: ForecastExample) -> Figure:
    """The window, what followed, and what each strategy forecast."""
    chosen = colours(list(example.forecasts))
    length, horizon = len(example.history), len(example.truth)
    shown = min(length, 2 * horizon)
    future = np.arange(horizon)
    with house_style():
        figure, (axes,) = canvas(height=2.5)
        axes.plot(np.arange(-shown, 0), example.history[-shown:], color=MUTED, linewidth=0.9)
        axes.plot(future, example.truth, color=INK, linewidth=1.6)
        for strategy, values in example.forecasts.items():
            axes.plot(future, values, color=chosen[strategy])
        axes.axvline(-0.5, color=MUTED, linewidth=0.7, linestyle=":")
        axes.set_title(f"{example.label} ({plain(example.channel)})")
        axes.set_xlabel("steps from the forecast's start")
        lines = {"input": Line2D([], [], color=MUTED), "truth": Line2D([], [], color=INK)}
        key(figure, chosen, others=lines)
    return figure


def confusion_matrix(counts: np.ndarray, classes: Sequence[str], title: str) -> Figure:
    """Rows are true classes; a cell is as dark as its share of the row."""
    size = len(classes)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    with house_style():
        figure, (axes,) = canvas(height=WIDTH * 0.85)
        places = np.argwhere(counts).tolist()
        cells = [Rectangle((guess - 0.5, true - 0.5), 1, 1) for true, guess in places]
        shades = [
            to_rgba(KEPT if true == guess else LEFT, 0.75 * float(shares[true, guess]))
            for true, guess in places
        ]
        axes.add_collection(PatchCollection(cells, facecolors=shades, linewidths=0))
        for true, guess in places if size <= _CELLS else []:
            axes.text(guess, true, str(counts[true, guess]), ha="center", va="center")
        names = map(str, classes)
        labels = [plain(name if len(name) <= 10 else name[:9] + "…") for name in names]
        ticks = range(0, size, max(1, size // 20))
        named = [labels[tick] for tick in ticks]
        crowded = sum(map(len, named)) > 40
        axes.set_xticks(ticks, named, rotation=90 if crowded else 0)
        axes.set_yticks(ticks, named)
        axes.set_xlim(-0.5, size - 0.5)
        axes.set_ylim(size - 0.5, -0.5)
        axes.set_aspect("equal")
        axes.grid(visible=False)
        axes.set_title(title)
        axes.set_xlabel("predicted class")
        axes.set_ylabel("true class")
    return figure


def anomaly_scores(strip: AnomalyStrip, strategy: str) -> Figure:
    """Scores as multiples of the threshold; labelled anomalies are shaded."""
    colour = colours(list(strip.scores))[strategy]
    with house_style():
        figure, (axes,) = canvas(height=2.2)
        rows, peaks = thin_out(strip.scores[strategy] / (strip.thresholds[strategy] or 1.0))
        low, high = float(np.nanmin(peaks)), float(np.nanmax(peaks))
        if high > 10 * max(low, 0):
            peaks = np.maximum(peaks, max(low, high * 1e-4))  # a logarithm has no zero
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter("{x:g}")
        axes.plot(rows + strip.first_row, peaks, color=colour, linewidth=0.8)
        axes.axhline(1, color=INK, linewidth=0.8, linestyle="--")
        axes.set_title(f"{strategy}: score / threshold")
        axes.set_xlabel(f"test row, segment {plain(str(strip.segment))}")
        axes.grid(axis="x", visible=False)
        _shade(axes, strip)
    return figure


def _shade(axes: Axes, strip: AnomalyStrip) -> None:
    steps = np.diff(strip.labels.astype(int), prepend=0, append=0)
    pairs = zip(np.flatnonzero(steps == 1), np.flatnonzero(steps == -1), strict=True)
    for start, stop in pairs:
        axes.axvspan(
            strip.first_row + start, strip.first_row + stop, color=ALARM, alpha=0.2, linewidth=0
        )


def spectrum(view: SpectralView, title: str) -> Figure:
    """A window in time and in frequency: what the mask keeps, and what it leaves."""
    with house_style():
        figure, (time, frequency) = canvas(2, height=3.5)
        _kept_and_left(time, view)
        time.set_title(f"{title}: score {view.score:.3g} ({plain(view.channel)})")
        time.set_xlabel("step")
        bins = np.arange(len(view.amplitude))
        kept = view.amplitude * view.mask
        frequency.bar(bins, view.amplitude, color=LEFT, width=0.8)
        frequency.bar(bins, kept, color=KEPT, width=0.8)
        frequency.set_xlabel("cycles in the window")
        frequency.set_title("amplitude")
        frequency.grid(axis="x", visible=False)
        figure.legend(*_spectral_key(), loc="outside upper left", ncols=3)
    return figure


def _kept_and_left(axes: Axes, view: SpectralView) -> None:
    steps: Any = np.arange(len(view.values))
    axes.plot(steps, view.values, color=MUTED, linewidth=0.9)
    axes.plot(steps, view.kept, color=KEPT, linewidth=1.4)
    axes.fill_between(
        steps, view.kept, view.values, color=LEFT, alpha=0.35, linewidth=0, interpolate=True
    )


def _spectral_key() -> tuple[list[Any], list[str]]:
    window = Line2D([], [], color=MUTED)
    kept, left = Line2D([], [], color=KEPT), Rectangle((0, 0), 1, 1, color=LEFT, alpha=0.6)
    return [window, kept, left], ["window", "kept", "left"]


def score_figure(
    values: np.ndarray,
    scores: np.ndarray,
    *,
    window: int,
    stride: int,
    columns: Sequence[str],
    count: int = 3,
    times: np.ndarray | None = None,
) -> Figure:
    """Scores along a series [T, C], and its worst and best windows with what a fresh scorer keeps.

    `scores` [N] belongs to windows of `window` rows, `stride` apart; of windows that overlap only
    the most extreme is drawn, in its least reliable channel. `times` [T] are those of the rows.
    """
    places = np.arange(len(values)) if times is None else times
    ends = {"least reliable": np.argsort(-scores), "most reliable": np.argsort(scores)}
    picks = {name: apart(order, count, window, stride) for name, order in ends.items()}
    rows = max(map(len, picks.values()))
    with house_style():
        figure = Figure(figsize=(8.5, 1.9 * rows + 2.1), dpi=150, layout="constrained")
        grid = figure.add_gridspec(rows + 1, 2)
        along = figure.add_subplot(grid[0, :])
        starts, peaks = thin_out(scores)
        along.plot(places[starts * stride], peaks, color=MUTED, linewidth=0.8)
        where = "at a row" if times is None else "at a time"
        along.set_title(f"unreliability score of the window that begins {where}")
        for column, (name, chosen) in enumerate(picks.items()):
            cut = np.stack([values[i * stride : i * stride + window] for i in chosen])
            colour = KEPT if column else ALARM
            begins = places[np.array(chosen) * stride]
            along.scatter(begins, scores[chosen], color=colour, s=22, zorder=3)
            for row, (place, view) in enumerate(
                zip(chosen, spectral_views(cut, tuple(columns)), strict=True)
            ):
                axes = figure.add_subplot(grid[row + 1, column])
                _kept_and_left(axes, view)
                first = place * stride + 1
                rows_of = f"rows {first:,} – {first + window - 1:,}"
                axes.set_title(f"{name}: {rows_of}, {plain(view.channel)}, {scores[place]:.3g}")
        figure.legend(*_spectral_key(), loc="outside upper left", ncols=3)
    return figure


def apart(order: np.ndarray, count: int, window: int, stride: int) -> list[int]:
    """The first `count` windows of an order that do not overlap."""
    chosen: list[int] = []
    for place in order.tolist():
        if all(abs(place - other) * stride >= window for other in chosen):
            chosen.append(place)
        if len(chosen) == count:
            break
    return chosen
