"""Baselines beside every test result: naive forecasts, the majority class, a ridge, random alarms.

A baseline is a row of the same measures as the model's. Each function returns a record: `rows` of
measures by name, the model's first, and `sentences` where the model does not beat them. Results
keep it apart from the row of the run, which reports and comparisons are made from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from sacm.data.batches import WindowBatches
from sacm.data.datasets import ClassificationData, ForecastingData
from sacm.data.scaling import ChannelScaler, fill_data
from sacm.data.windows import order_in_time
from sacm.metrics.anomaly import AnomalyReport
from sacm.metrics.catalogue import METRICS
from sacm.metrics.classification import ClassificationReport, measure_classes
from sacm.metrics.forecasting import (
    ForecastAccumulator,
    ForecastReport,
    Row,
    naive_training_error,
    season_length,
)
from sacm.quality.label_model import CaseKernel, Ridge

_RIDGE_CASES, _RIDGE_FEATURES = 2_000, 2_520
_RELATIVE = {"mase": "MASE", "smape": "sMAPE", "wape": "WAPE"}
_MOST_RIDGE_VALUES = 40_000_000  # numbers in all cases up to which the ridge takes seconds


def forecast_baselines(
    data: ForecastingData,
    scaler: ChannelScaler,
    batches: WindowBatches[Any],
    measure: Callable[[ForecastAccumulator], ForecastReport],
) -> tuple[ForecastReport, dict[str, Any]]:
    """Measure a model and the naive forecasts on the same test windows.

    "naive" repeats the last value of the window, "seasonal naive" the last season of the series.
    Both see the data as they came, whatever a strategy makes of them. `measure` adds the model's
    forecasts to an accumulator.
    """
    filled, _ = fill_data(data)  # a naive forecast repeats values that are there
    order, whole = order_in_time(data)
    values = filled.values[order]  # as windows count their rows
    # Data that only test have no training rows: the step of a season is then taken from them.
    ranges = data.ranges("train") or data.ranges("test")
    longest = max(ranges, key=len)
    season = season_length(filled.values[longest.start : longest.stop], data.frequency)
    own = data.by_series(ranges) if scaler.series else {"": ranges}
    segments = (
        [data.values[rows.start : rows.stop] for rows in own.get(name, ())] or [data.values[:0]]
        for name in scaler.series or ("",)
    )
    naive_error = np.stack([naive_training_error(each, season) for each in segments])  # [S, C]

    def repeat(count: int) -> ForecastReport:
        """Errors of repeating the last `count` rows before the targets."""
        errors = ForecastAccumulator(scaler, naive_error)
        for batch in batches:
            steps = np.arange(batch.y.shape[1]) % count
            first = batch.positions.numpy()[:, None] + batch.x.shape[1] - count
            scaled = scaler.of_places(batch.series).transform(values[first + steps])  # [B, H, C]
            forecast = torch.from_numpy(scaled)
            errors.update(forecast, batch.y, observed=batch.observed, series=batch.series)
        return errors.compute()

    reports = {"model": measure(ForecastAccumulator(scaler, naive_error)), "naive": repeat(1)}
    begins, starts = np.array([rows.start for rows in whole]), batches.windows.starts
    begin = begins[np.searchsorted(begins, starts, side="right") - 1]
    length = batches.windows.batch([0]).x.shape[1]
    if season > 1 and (starts + length - season >= begin).all():  # a season before every window
        reports["seasonal naive"] = repeat(season)
    alone = data.channels == 1 and not scaler.series  # else units would be mixed
    rows: dict[str, Row] = {}
    for name, report in reports.items():
        rows[name] = {"mae": report.scaled.mae, "mse": report.scaled.mse, **report.relative}
        if alone:
            rows[name]["mae_raw"] = None if report.raw is None else report.raw.mae
    model, *others = reports
    best = min(others, key=lambda name: reports[name].scaled.mae)
    sentences = []
    if reports[model].scaled.mae >= reports[best].scaled.mae:
        what = "value" if best == "naive" else f"season of {season} steps"
        key, unit = ("mae_raw", "") if alone else ("mae", ", z-scored")
        sentences.append(
            f"this model loses to repeating the last {what} ({best}): MAE {rows[model][key]:.4g} "
            f"against {rows[best][key]:.4g}{unit}. What may help: longer training (--epochs, "
            "--time), more input (--input-len), more rows; or use that baseline."
        )
    return reports[model], {"rows": rows, "sentences": sentences, "season": season}


def alarm_baselines(report: AnomalyReport) -> dict[str, Any]:
    """What an alarm on every row and alarms at random reach, from the counts of a report.

    A random score has AUC-PR of the anomaly rate and AUC-ROC of 0.5 in expectation; its F1 is that
    of as many alarms as the model raised.
    """
    rate, share = (count / report.points for count in (report.anomalous_points, report.alarms))
    names = ("precision", "recall", "f1", "f1_pa", "auc_pr", "auc_roc")
    model = {name: report.measures[name] for name in names}
    if not 0 < rate < 1:
        return {"rows": {"model": model}, "sentences": []}
    always, random = (2 * rate * alarms / (rate + alarms) for alarms in (1, share))
    precision, adjusted = rate if share else None, report.measures["f1_pa_random"]
    every = dict(zip(names, (rate, 1.0, always, always, rate, 0.5), strict=True))
    some = dict(zip(names, (precision, share, random, adjusted, rate, 0.5), strict=True))
    sentences = [
        f"this detector does not beat {what}: {METRICS.get(name).label} {value:.4g} against "
        f"{reached:.4g}."
        for what, name, reached in (
            ("an alarm on every row", "f1", always),
            ("random alarms", "f1", random),
            ("random scores", "auc_roc", 0.5),
        )
        if (value := model[name]) is not None and value <= reached
    ]
    rows = {"model": model, "always alarm": every, "random alarms": some}
    return {"rows": rows, "sentences": sentences}


def class_baselines(data: ClassificationData, report: ClassificationReport) -> dict[str, Any]:
    """What the most frequent training class and a ridge on MiniROCKET's features reach.

    Both learn from the labels that the network learnt from.
    """
    codes, truth = data.encode(data.y_train), torch.from_numpy(data.encode(data.y_test))
    counts = np.bincount(codes, minlength=len(data.classes))
    logits = torch.from_numpy(np.log((counts + 1) / (counts + 1).sum()))
    majority = measure_classes(logits.expand(len(truth), -1), truth)
    reports = {"model": report, "majority class": majority}
    alone = data.X_test is data.X_train  # cases that were given to be tested, without training ones
    size = data.X_train.size + data.X_test.size
    if len(truth) and len(np.unique(codes)) > 1 and not alone and size <= _MOST_RIDGE_VALUES:
        answers = data.encode(ridge_baseline(data.X_train, data.y_train, data.X_test))
        reports["ridge"] = measure_classes(torch.eye(len(data.classes))[answers], truth)
    rows: dict[str, Row] = {name: other.row() for name, other in reports.items()}
    what = {
        "majority class": f"always answering {data.classes[int(counts.argmax())]}",
        "ridge": "ridge regression on MiniROCKET's features, which trains no network",
    }
    if "ridge" in rows:
        rows["ridge"]["nll"] = None  # it gives no probabilities
    sentences = [
        f"this classifier does not beat {what[name]}: accuracy {report.accuracy:.4g} against "
        f"{other.accuracy:.4g}."
        for name, other in reports.items()
        if name != "model" and report.accuracy <= other.accuracy
    ]
    return {"rows": rows, "sentences": sentences}


def ridge_baseline(
    X_train: np.ndarray, y_train: np.ndarray, X_test: np.ndarray, *, seed: int = 0
) -> np.ndarray:
    """Labels `[n]` for test cases by random-convolution features and kernel ridge regression.

    Cases are `[N, C, L]` and `[n, C, L]`, labels `[N]`. At most 2,000 random training cases are
    used, with 2,520 features of the series and as many of its differences.
    """
    chosen = np.sort(np.random.default_rng(seed).permutation(len(X_train))[:_RIDGE_CASES])
    classes, codes = np.unique(np.asarray(y_train)[chosen], return_inverse=True)
    kernel = CaseKernel(X_train[chosen], features=_RIDGE_FEATURES, seed=seed)
    _, weights = Ridge(kernel.own_basis).fit(np.eye(len(classes))[codes])
    labels: np.ndarray = classes[(kernel.basis(X_test) @ weights).argmax(axis=1)]
    return labels


def tabulate(
    task: str, baselines: Mapping[str, Any]
) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """A record of this file for people: names of measures, and rows that begin with a name.

    Of forecasts the relative errors come first, which need no unit; of a single channel the error
    in its own.
    """
    rows = baselines.get("rows", {})
    names = list(rows.get("model", ()))
    labels = {name: metric.label for name, metric in METRICS.items()} | _RELATIVE
    if task == "forecasting" and "mae_raw" in names:
        names, labels["mae_raw"] = ["mae_raw", *_RELATIVE], "MAE"
    elif task == "forecasting":
        names = [*_RELATIVE, "mae", "mse"]
        labels |= {name: f"{labels[name]}, z-scored" for name in ("mae", "mse")}
    cells = [(name, *(row.get(each) for each in names)) for name, row in rows.items()]
    return tuple(labels.get(name, name) for name in names), cells


def compare_with_baselines(baselines: Mapping[str, Any]) -> list[str]:
    """Whether the model is better than every baseline, or what it loses to, capitalised."""
    others = [name for name in baselines.get("rows", {}) if name != "model"]
    better = [f"Better than every baseline: {', '.join(others)}."] if others else []
    return [text[:1].upper() + text[1:] for text in baselines.get("sentences", ())] or better
