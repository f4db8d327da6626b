"""Pictures of predictions, and the page of one run: forecast, errors, intervals, repairs, use."""

from __future__ import annotations

import math
from pathlib import Path
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
from sacm.reports.page import (
    Section,
    code_block,
    embed_figure,
    figures,
    folded,
    page,
    paragraph,
)
from sacm.reports.table import Table, number, record_table
from sacm.tasks import get_task
from sacm.tasks.calibration import ErrorQuantiles, ShownForecasts
from sacm.training import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sacm.inference.forecast import Forecast

_TASKS = {
    "forecasting": "forecasts {horizon} steps of {channels} channels from the last {length}",
    "classification": "tells {classes} classes apart, {length} steps of {channels} channels",
    "anomaly": "scores rows of {channels} channels in windows of {length}",
}
_HISTORY = 4  # horizons that are drawn before a forecast, at least one input
_SHARES = (0.8, 0.95)
_LARGE, _WIDTH = "large", 5.5  # class and inches of large figures, which fit a telephone


def draw_answer(predictor: Predictor, answer: Answer, *, width: float = WIDE) -> tuple[Figure, str]:
    """Draw forecasts or alarms, and say which part of the answer the figure shows.

    Raises:
        ArgumentError: The network classifies.
    """
    if predictor.settings.task == "classification":
        raise ArgumentError("--plot draws forecasts and alarms; classes have no picture.")
    if answer.forecast is not None:
        shape = predictor.shape
        return _draw_forecast(
            answer, answer.forecast, max(shape.input_len, _HISTORY * shape.horizon), width
        )
    known = {"row", "score", "threshold", "alarm"}
    times = [str(name) for name in answer.frame.columns if name not in known]
    return alarm_figure(answer.frame, times[0] if times else None, answer.values, width=width), ""


def _draw_forecast(
    answer: Answer, forecast: Forecast, count: int, width: float
) -> tuple[Figure, str]:
    """A forecast after the last `count` rows: the channels, or the first series of a panel."""
    import pandas as pd

    data, form, frame = forecast.history.data, forecast.history.form.as_table(), answer.frame
    name, rows = next(iter(data.last_rows(count).items()))
    past = pd.DataFrame(data.values[rows], columns=list(data.columns))
    if data.observed is not None:
        past = past.where(data.observed[rows] > 0)
    columns, time, said = list(data.target or data.columns), form.time, ""
    repaired = forecast.repaired[0][:, [data.columns.index(column) for column in columns]]
    if form.long:  # the first of the series, which may be channels side by side
        if not set(data.columns) <= set(frame.columns):
            name = columns[0]
            past = past[[name]].rename(columns={name: form.channels[0]})
            columns = [form.channels[0]]
        frame = frame[frame[form.id].astype(str) == name].reset_index(drop=True)
        time = form.time or "ds"
        said = f"The picture shows series {name!r}."
    if data.timestamps is not None and time is not None:
        past[time] = form.write_times(data.timestamps[rows]).to_numpy()
    return forecast_figure(past, frame, columns, time, repaired=repaired, width=width), said


def run_page(run: Run) -> str:
    """Write the page of a finished run as HTML; it loads nothing from elsewhere.

    It begins with what the run is used for: the forecast that follows its data, the forecasts of
    the test rows beside the truth, errors by channel and by step, intervals, repairs. How the run
    was made is folded away.
    """
    settings, shape, metrics = run.settings, run.shape, run.metrics
    what = _TASKS[settings.task].format(
        horizon=shape.horizon,
        channels=shape.channels,
        length=shape.input_len,
        classes=len(shape.classes),
    )
    lead = [f"{settings.backbone} with {settings.strategy} {what}; it learnt from {settings.data}."]
    lead += [_upper(sentence) for sentence in metrics.get("baselines", {}).get("sentences", ())]
    sections = [*_prediction(run), *_results(run)]
    if settings.task == "forecasting":
        sections += _intervals(run)
    sections += [*_candidates(run), *_repairs(run), _use(run), _details(run)]
    return page(run.folder.name, lead, sections)


def _prediction(run: Run) -> list[Section]:
    """What the network says about its data now, and forecasts beside the truth."""
    if run.settings.task == "classification":
        return []
    title = "Forecast" if run.settings.task == "forecasting" else "Alarms in the test rows"
    predictor, answer = Predictor.load(run), None
    try:
        source: Any = run.settings.data
        if run.settings.task == "forecasting":
            shares = _SHARES if _has_intervals(predictor) else ()
            answer = predictor.tabulate(source, intervals=shares)
        else:
            answer = predictor.tabulate(run.load_data())
        figure, said = draw_answer(predictor, answer, width=_WIDTH)
        drawn = embed_figure(figure, said, name="forecast", kind=_LARGE)
        parts = (drawn, *(paragraph(note, note=True) for note in answer.notes))
    except SACMError as error:
        parts = (paragraph(f"The data of the run give no answer now: {error}"),)
    return [Section(title, parts), *_truth(run, answer)]


def _has_intervals(predictor: Predictor) -> bool:
    """Whether a run has windows enough for the intervals of its page."""
    if predictor.errors is None:
        return False
    try:
        return bool(len(predictor.errors.offset((1 + max(_SHARES)) / 2)))
    except ArgumentError:
        return False


def _truth(run: Run, answer: Answer | None) -> list[Section]:
    """Forecasts of test rows beside what came."""
    shown = None if run.calibration is None else ShownForecasts.from_record(run.calibration)
    if run.settings.task != "forecasting" or shown is None:
        return []
    count, horizon, channels = shown.forecasts.shape
    rows = shown.rows[:, None] + np.arange(horizon)
    where = rows + 1
    if answer is not None and answer.forecast is not None:
        data = answer.forecast.history.data
        if data.timestamps is not None and rows.max() < len(data.timestamps):
            # Rows have these times only if the data still are those of the training.
            now, then = data.values[rows][..., :channels], shown.truth
            known = np.isfinite(now) & np.isfinite(then)
            if np.allclose(now[known], then[known], rtol=1e-3, atol=1e-5):
                where = data.timestamps[rows]
    names = run.shape.columns or tuple(f"channel {place + 1}" for place in range(channels))
    figure = truth_figure(shown.forecasts, shown.truth, where, names[:channels], width=_WIDTH)
    caption = (
        f"{count:,} forecasts of {horizon} steps, one after the other, over the last "
        f"{count * horizon:,} rows of the test part."
    )
    return [
        Section("Forecasts and truth", (embed_figure(figure, caption, name="truth", kind=_LARGE),))
    ]


def _results(run: Run) -> list[Section]:
    metrics, task = run.metrics, run.settings.task
    if "test" not in metrics:
        return [Section("Results", (paragraph("There were no test cases."),))]
    sections = []
    report = metrics["report"]
    if task == "forecasting":
        sections.append(_errors(run, report))
    headings, rows = get_task(task).tabulate(metrics)
    parts = [_table(headings, rows).html()]
    beside = metrics.get("baselines", {}).get("rows", {})
    if len(beside) > 1:
        names = list(beside["model"])
        cells = [(name, *(row.get(each) for each in names)) for name, row in beside.items()]
        parts.append(paragraph("Beside what needs no network, on the same test data:"))
        parts.append(_table(("", *names), cells).html())
    if "confusion" in report:
        figure = confusion_matrix(np.asarray(report["confusion"]), run.shape.classes, "")
        parts.append(embed_figure(figure, "Test cases by class.", name="confusion"))
    count = f"{metrics['evaluated_windows']:,} test windows, rows or cases."
    if share := report.get("unmeasured"):
        count += f" {share:.1%} of the test targets were not measured and do not count."
    title = "All channels together, beside baselines" if task == "forecasting" else "Results"
    return [*sections, Section(title, (paragraph(count, note=True), *parts))]


def _errors(run: Run, report: dict[str, Any]) -> Section:
    """Errors of every channel in its own units, and of every step ahead."""
    raw, channels = report["raw"], len(report["raw"]["channel_mae"])
    names = run.shape.columns or tuple(f"channel {place + 1}" for place in range(channels))
    rows = []
    for name, mae, mse in zip(names, raw["channel_mae"], raw["channel_mse"], strict=True):
        rows.append((name, mae, None if mse is None else math.sqrt(mse)))
    headings = ("channel", "mean absolute error", "root mean squared error")
    table = Table(headings, tuple(rows)).html(kind="sortable")
    alone = channels == 1
    steps = raw["step_mae"] if alone else report["scaled"]["step_mae"]
    title = "mean absolute error" + ("" if alone else ", z-scored, mean of the channels")
    figure = embed_figure(step_figure(steps, title), "Error by steps ahead.", name="steps")
    said = paragraph("In the units of each channel.", note=True)
    return Section("Errors by channel and by step", (said, table, figures(figure)))


def _intervals(run: Run) -> list[Section]:
    """What intervals should enclose and what they did."""
    errors = None if run.calibration is None else ErrorQuantiles.from_record(run.calibration)
    if errors is None or not errors.measured:
        return []
    rows = [(f"{share:.0%}", f"{value:.1%}") for share, value in errors.measured.items()]
    said = (
        "Conformal intervals, for each step and channel. Measured on the later half of the windows "
        f"and calibrated on the earlier half; forecasts use all of them ({errors.source})."
    )
    table = Table(("should enclose", "enclosed"), tuple(rows))
    return [Section("Intervals", (table.html(), paragraph(said, note=True)))]


def _candidates(run: Run) -> list[Section]:
    """What competed for the run, if anything did."""
    found = run.metrics.get("candidates") or []
    if not found:
        return []
    rows = [
        (
            each["name"],
            each.get("error"),
            each.get("seconds"),
            "yes" if each.get("chosen") else "",
        )
        for each in found
    ]
    headings = ("candidate", "validation error", "seconds", "chosen")
    table = Table(headings, tuple(rows))
    return [Section("Candidates", (table.html(kind="sortable"),))]


def _repairs(run: Run) -> list[Section]:
    """What was found broken in the training data, and what the strategy made of it."""
    path = run.folder / "quality.json"
    parts = [paragraph(note) for note in run.metrics.get("notes", ())]
    if path.exists():
        found = read_json(path)
        broken = {name: own for name, own in found["shares"].items() if sum(own.values())}
        verdict = f"{found['share']:.2%} of the values in {found['rows']:,} rows are broken"
        suspect = found.get("suspect_share", 0)
        verdict += f", {suspect:.2%} are unusual and may be real." if suspect else "."
        parts.append(paragraph(verdict if broken else "Nothing broken was found in the data."))
        if broken:
            kinds = list(next(iter(broken.values())))
            rows = [
                (name, *(f"{own[kind]:.2%}" if own[kind] else "" for kind in kinds))
                for name, own in broken.items()
            ]
            parts.append(Table(("channel", *kinds), tuple(rows)).html(kind="sortable"))
    return [Section("What was found and repaired", tuple(parts))] if parts else []


def _use(run: Run) -> Section:
    lines = [
        f"sacm predict {run.folder} --data new.csv --out answers.csv",
        f"sacm evaluate {run.folder} --data labelled_or_later.csv",
        f"sacm export {run.folder} --to onnx --out model.onnx",
        f"sacm train --config {run.folder / 'config.json'} --runs again",
    ]
    limits = (
        "It was tested on one stretch of one data set. Data of another plant, another season or "
        "other units may be answered worse without a sign of it: test it on them first with "
        "`sacm evaluate RUN --data FILE`, and watch its errors in use."
    )
    return Section("How to use it", (code_block("\n".join(lines)), paragraph(limits)))


def _details(run: Run) -> Section:
    """How the run was made, folded away."""
    settings, shape, history = run.settings, run.shape, run.history
    columns = "unnamed" if shape.columns is None else ", ".join(shape.columns)
    card = {
        "task": settings.task,
        "network": f"{settings.backbone}, {run.metrics['parameters']:,} parameters",
        "trained on": settings.data,
        "channels": columns,
        "time step": shape.frequency or "unknown",
        "seed": settings.seed,
        "chosen by": f"validation {settings.select}, epoch {run.metrics['best_epoch']} of "
        f"{run.metrics['epochs']}",
        "threshold": None if run.threshold is None else number(run.threshold),
    }
    names = [
        name for name in (history[0] if history else {}) if name.startswith(("train_l", "val_"))
    ]
    curves = [
        embed_figure(
            training_curves({settings.strategy: [history]}, name),
            name.replace("_", " "),
            name=name,
        )
        for name in names
    ]
    asked = {k: v for k, v in settings.model_dump().items() if v not in (None, {})}
    environment = read_json(Path(run.folder) / "environment.json")
    parts = {
        "Model card": [record_table("", card).html(kind="settings")],
        "Training": [figures(*curves)],
        "Settings": [record_table("setting", asked).html(kind="settings")],
        "Environment": [record_table("environment", environment).html(kind="settings")],
    }
    return Section("Details", tuple(folded(title, *own) for title, own in parts.items()))


def _table(headings: Any, rows: Any) -> Table:
    return Table(tuple(headings), tuple(tuple(row) for row in rows))


def _upper(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
