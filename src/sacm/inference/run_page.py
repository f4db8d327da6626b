"""Pictures of predictions, and the page of one run: forecast, errors, intervals, repairs, use."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sacm.errors import ArgumentError, SACMError
from sacm.files import read_json
from sacm.inference.predictor import Answer, Predictor
from sacm.reports.figures import (
    WIDE,
    alarm_figure,
    confusion_matrix,
    forecast_figure,
    step_figure,
    training_curves,
    truth_figure,
)
from sacm.reports.page import code_block, embed_figure, figures, folded, page, paragraph
from sacm.reports.table import Table, record_table
from sacm.tasks import get_task
from sacm.tasks.calibration import COVERAGES, ErrorQuantiles
from sacm.training import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TASKS = {
    "forecasting": "forecasts {horizon} steps of {channels} channels from the last {length}",
    "classification": "tells {classes} classes apart, {length} steps of {channels} channels",
    "anomaly": "scores rows of {channels} channels in windows of {length}",
}
_HISTORY = 4  # horizons that are drawn before a forecast, at least one input
_LARGE, _WIDTH = "large", 5.5  # class and inches of large figures, which fit a telephone
_USE = """\
sacm predict {run} --data new.csv --out answers.csv
sacm evaluate {run} --data labelled_or_later.csv
sacm export {run} --to onnx --out model.onnx
sacm train --config {run}/config.json --runs again"""
_LIMITS = (
    "It was tested on one stretch of one data set. Data of another plant, another season or other "
    "units may be answered worse without a sign of it: test it on them first with "
    "`sacm evaluate RUN --data FILE`, and watch its errors in use."
)


def draw_answer(predictor: Predictor, answer: Answer, *, width: float = WIDE) -> tuple[Figure, str]:
    """Draw forecasts or alarms; the caption names the part of the result that is shown.

    Raises:
        ArgumentError: The network classifies.
    """
    if predictor.settings.task == "classification":
        raise ArgumentError("--plot draws forecasts and alarms; classes have no picture.")
    if answer.forecast is None:
        known = {"row", "score", "threshold", "alarm"}
        times = [str(name) for name in answer.frame.columns if name not in known]
        return alarm_figure(answer.frame, next(iter(times), None), answer.values, width=width), ""
    import pandas as pd

    forecast, frame, shown = answer.forecast, answer.frame, ""
    data, form, name = forecast.data, forecast.form.as_table(), forecast.series[0]
    rows = data.last_rows(max(predictor.shape.input_len, _HISTORY * predictor.shape.horizon))[name]
    past = pd.DataFrame(data.values[rows], columns=list(data.columns))
    if data.observed is not None:
        past = past.where(data.observed[rows] > 0)
    columns, time = list(data.target or data.columns), form.time
    repaired = forecast.repaired[0][:, [data.columns.index(column) for column in columns]]
    if form.long:  # the first of the series, which may be channels side by side
        if not set(data.columns) <= set(frame.columns):
            name = columns[0]
            past = past[[name]].rename(columns={name: form.channels[0]})
            columns = [form.channels[0]]
        frame = frame[frame[form.id].astype(str) == name].reset_index(drop=True)
        time = form.time or "ds"
        shown = f"The picture shows series {name!r}."
    if data.timestamps is not None and time is not None:
        past[time] = form.write_times(data.timestamps[rows]).to_numpy()
    return forecast_figure(past, frame, columns, time, repaired=repaired, width=width), shown


def run_page(run: Run) -> str:
    """Write the page of a finished run as HTML; it loads nothing from elsewhere.

    It begins with what the run is used for: the forecast that follows its data, the forecasts of
    the test rows beside the truth, errors by channel and by step, intervals, repairs. How the run
    was made is folded away.
    """
    settings, shape = run.settings, run.shape
    what = _TASKS[settings.task].format(
        horizon=shape.horizon,
        channels=shape.channels,
        length=shape.input_len,
        classes=len(shape.classes),
    )
    lead = [f"{settings.backbone} with {settings.strategy} {what}; it learnt from {settings.data}."]
    sentences = run.metrics.get("baselines", {}).get("sentences", ())
    lead += [sentence[:1].upper() + sentence[1:] for sentence in sentences]
    rows = [tuple(row.values()) for row in run.metrics.get("race", {}).get("table", ())]
    headings = ("candidate", "validation MAE, z-scored", "weight", "steps", "seconds")
    sections = {
        **_prediction(run),
        **_results(run),
        "Intervals": _intervals(run),
        "Candidates": [_table(headings, rows, kind="sortable")] if rows else [],
        "What was found and repaired": _repairs(run),
        "How to use it": [code_block(_USE.format(run=run.folder)), paragraph(_LIMITS)],
        "Details": _details(run),
    }
    return page(run.folder.name, lead, sections)


def _prediction(run: Run) -> dict[str, list[str]]:
    """What the network says about its data now, and forecasts beside the truth."""
    if run.settings.task == "classification":
        return {}
    forecasts, predictor, answer = run.settings.task == "forecasting", Predictor.load(run), None
    try:
        if forecasts:
            shares = COVERAGES if _has_intervals(predictor.errors) else ()
            answer = predictor.tabulate(run.settings.data, intervals=shares)
        else:
            answer = predictor.tabulate(run.load_data())
        figure, shown = draw_answer(predictor, answer, width=_WIDTH)
        parts = [embed_figure(figure, shown, name="forecast", kind=_LARGE)]
        parts += [paragraph(note, note=True) for note in answer.notes]
    except SACMError as error:
        parts = [paragraph(f"The data of the run give no answer now: {error}")]
    if not forecasts:
        return {"Alarms in the test rows": parts}
    return {"Forecast": parts, "Forecasts and truth": _truth(run, answer)}


def _has_intervals(errors: ErrorQuantiles | None) -> bool:
    """Whether a run has windows enough for the intervals of its page."""
    try:
        return errors is not None and len(errors.offset((1 + max(COVERAGES)) / 2)) > 0
    except ArgumentError:
        return False


def _truth(run: Run, answer: Answer | None) -> list[str]:
    """Forecasts of test rows beside what came."""
    tensors = {} if run.calibration is None else run.calibration.tensors
    if "shown_rows" not in tensors:
        return []
    forecasts, truth = tensors["shown_forecasts"].numpy(), tensors["shown_truth"].numpy()
    count, horizon, channels = forecasts.shape
    rows = tensors["shown_rows"].numpy()[:, None] + np.arange(horizon)
    where = rows + 1
    times = None if answer is None else answer.forecast.data.timestamps
    if answer is not None and times is not None and rows.max() < len(times):
        # Rows have these times only if the data still are those of the training.
        now = answer.forecast.data.values[rows][..., :channels]
        known = np.isfinite(now) & np.isfinite(truth)
        if np.allclose(now[known], truth[known], rtol=1e-3, atol=1e-5):
            where = times[rows]
    figure = truth_figure(forecasts, truth, where, _channels(run, channels), width=_WIDTH)
    caption = (
        f"{count:,} forecasts of {horizon} steps, one after the other, over the last "
        f"{count * horizon:,} rows of the test part."
    )
    return [embed_figure(figure, caption, name="truth", kind=_LARGE)]


def _channels(run: Run, count: int) -> Sequence[str]:
    """Names of the first channels."""
    return (run.shape.columns or tuple(f"channel {place + 1}" for place in range(count)))[:count]


def _results(run: Run) -> dict[str, list[str]]:
    """Errors by channel and step, and the results beside baselines."""
    metrics, task = run.metrics, run.settings.task
    if "test" not in metrics:
        return {"Results": [paragraph("There were no test cases.")]}
    report = metrics["report"]
    count = f"{metrics['evaluated_windows']:,} test windows, rows or cases."
    if share := report.get("unmeasured"):
        count += f" {share:.1%} of the test targets were not measured and do not count."
    parts = [paragraph(count, note=True), _table(*get_task(task).tabulate(metrics))]
    beside = metrics.get("baselines", {}).get("rows", {})
    if len(beside) > 1:
        names = list(beside["model"])
        cells = [(name, *(row.get(each) for each in names)) for name, row in beside.items()]
        parts.append(paragraph("Beside what needs no network, on the same test data:"))
        parts.append(_table(("", *names), cells))
    if "confusion" in report:
        figure = confusion_matrix(np.asarray(report["confusion"]), run.shape.classes, "")
        parts.append(embed_figure(figure, "Test cases by class.", name="confusion"))
    if task != "forecasting":
        return {"Results": parts}
    return {
        "Errors by channel and by step": _errors(run, report),
        "All channels together, beside baselines": parts,
    }


def _errors(run: Run, report: dict[str, Any]) -> list[str]:
    """Errors of every channel in its own units, and of every step ahead."""
    raw = report["raw"]
    names = _channels(run, len(raw["channel_mae"]))
    squares = [None if mse is None else math.sqrt(mse) for mse in raw["channel_mse"]]
    rows = zip(names, raw["channel_mae"], squares, strict=True)
    headings = ("channel", "mean absolute error", "root mean squared error")
    single = len(names) == 1
    steps = raw["step_mae"] if single else report["scaled"]["step_mae"]
    title = "mean absolute error" + ("" if single else ", z-scored, mean of the channels")
    figure = embed_figure(step_figure(steps, title), "Error by steps ahead.", name="steps")
    said = paragraph("In the units of each channel.", note=True)
    return [said, _table(headings, rows, kind="sortable"), figures(figure)]


def _intervals(run: Run) -> list[str]:
    """What intervals should enclose and what they did."""
    if run.calibration is None or run.settings.task != "forecasting":
        return []
    errors = ErrorQuantiles.from_record(run.calibration)
    rows = [(f"{share:.0%}", f"{value:.1%}") for share, value in errors.measured.items()]
    said = (
        "Conformal intervals, for each step and channel. Measured on the later half of the windows "
        f"and calibrated on the earlier half; forecasts use all of them ({errors.source})."
    )
    table = _table(("should enclose", "enclosed"), rows)
    return [table, paragraph(said, note=True)] if rows else []


def _repairs(run: Run) -> list[str]:
    """What was found broken in the training data, and what the strategy made of it."""
    path = run.folder / "quality.json"
    parts = [paragraph(note) for note in run.metrics.get("notes", ())]
    if not path.exists():
        return parts
    quality = read_json(path)
    broken = {name: kinds for name, kinds in quality["shares"].items() if sum(kinds.values())}
    if not broken:
        return [*parts, paragraph("Nothing broken was found in the data.")]
    suspect = quality.get("suspect_share", 0)
    verdict = f"{quality['share']:.2%} of the values in {quality['rows']:,} rows are broken"
    verdict += f", {suspect:.2%} are unusual and may be real." if suspect else "."
    rows = [
        (name, *(f"{share:.2%}" if share else "" for share in kinds.values()))
        for name, kinds in broken.items()
    ]
    headings = ("channel", *next(iter(broken.values())))
    return [*parts, paragraph(verdict), _table(headings, rows, kind="sortable")]


def _details(run: Run) -> list[str]:
    """How the run was made, folded away."""
    settings, metrics, history = run.settings, run.metrics, run.history
    curves = []
    for name in history[0] if history else ():
        if name.startswith(("train_l", "val_")):
            figure = training_curves({settings.strategy: [history]}, name)
            curves.append(embed_figure(figure, name.replace("_", " "), name=name))
    chosen = f"{metrics['parameters']:,} parameters; epoch {metrics['best_epoch']} of "
    chosen += f"{metrics['epochs']} was chosen by validation {settings.select}."
    asked = {k: v for k, v in settings.model_dump().items() if v not in (None, {})}
    environment = read_json(run.folder / "environment.json")
    return [
        folded("Training", paragraph(chosen), figures(*curves)),
        folded("Settings", record_table("setting", asked).html(kind="settings")),
        folded("Environment", record_table("environment", environment).html(kind="settings")),
    ]


def _table(headings: Iterable[str], rows: Iterable[Iterable[Any]], kind: str = "") -> str:
    return Table(tuple(headings), tuple(map(tuple, rows))).html(kind=kind)
