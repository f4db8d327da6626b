"""Pictures of predictions, and the page of one run: forecast, errors, intervals, repairs, use."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sacm.data.datasets import fingerprint
from sacm.errors import ArgumentError, SACMError
from sacm.files import read_json
from sacm.inference.predictor import Answer, Predictor
from sacm.reports.figures import alarm_figure, count_figure, forecast_figure, truth_figure
from sacm.reports.page import details, embed_figure, page, paragraph
from sacm.reports.table import Table
from sacm.tasks import get_task
from sacm.tasks.baselines import compare_with_baselines, tabulate
from sacm.training import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COVERAGES = (0.8, 0.95)  # of the intervals that are drawn
_HISTORY = 4  # horizons that are drawn before a forecast, at least one input


def draw_answer(predictor: Predictor, answer: Answer) -> tuple[Figure, str]:
    """Draw forecasts or alarms; with a sentence if it is one series of several."""
    if predictor.settings.task == "classification":
        raise ArgumentError("--plot draws forecasts and alarms; classes have no picture.")
    if answer.forecast is None:
        return alarm_figure(answer.frame, answer.values), ""
    import pandas as pd

    forecast, data = answer.forecast, answer.forecast.data
    columns, name = list(data.columns), forecast.series[0]
    every = data.last_rows(len(data.values))[name]
    rows = every[-max(predictor.shape.input_len, _HISTORY * predictor.shape.horizon) :]
    past = pd.DataFrame(data.values[rows], columns=columns)
    ahead = pd.DataFrame(forecast.values[0], columns=columns)
    past.index, ahead.index = past.index + len(every) - len(rows) + 1, ahead.index + len(every) + 1
    for suffix, bound in forecast.bounds.items():
        ahead[[f"{column}_{suffix}" for column in columns]] = bound[0]
    if data.observed is not None:
        past = past.where(data.observed[rows] > 0)
    if forecast.times is not None:
        past.index, ahead.index = data.timestamps[rows], forecast.times[0]
    drawn = list(data.target or columns)
    repaired = forecast.repaired[0][:, [columns.index(column) for column in drawn]]
    shown = f"The picture shows series {name!r}." if len(forecast.series) > 1 else ""
    return forecast_figure(past[drawn], ahead, repaired), shown


def run_page(run: Run) -> str:
    """The page of a finished run as HTML; how the run was made is folded away."""
    settings, race = run.settings, run.metrics.get("race", {})
    made_of = race.get("sentence") or f"{settings.backbone}, trained with {settings.strategy}."
    lead = [*compare_with_baselines(run.metrics.get("baselines", {})), made_of]
    environment = read_json(run.folder / "environment.json")
    rows = [tuple(row.values()) for row in race.get("table", ())]
    headings = ("candidate", "validation MAE, z-scored", "weight", "steps", "seconds")
    sections = {
        **_prediction(run),
        **_results(run),
        "Candidates": [_table(headings, rows)] if rows else [],
        "What was found and repaired": _repairs(run),
        "Details": [
            paragraph(
                f"Run {run.folder.name}: {run.metrics['parameters']:,} parameters; epoch "
                f"{run.metrics['best_epoch']} of {run.metrics['epochs']} was chosen."
            ),
            *details(settings=settings.model_dump(), environment=environment),
        ],
    }
    return page(f"{settings.task.capitalize()}: {Path(settings.data).stem}", lead, sections)


def _prediction(run: Run) -> dict[str, list[str]]:
    """What the network says about its data now, and forecasts of test rows beside the truth."""
    task, predictor = run.settings.task, Predictor.load(run)
    if task == "classification":
        return {}
    windows = predictor.errors.windows if task == "forecasting" else 0
    shares = [share for share in _COVERAGES if windows >= 2 / (1 - share)]
    times = None
    try:
        data: Any = run.load_data()
        answer = predictor.tabulate(data, intervals=shares)
        figure, caption = draw_answer(predictor, answer)
        if task == "forecasting":
            ends = " and ".join(f"{share:.0%}" for share in shares)
            banded = f", with intervals for {ends} of new values" if ends else ""
            caption = f"The forecast that follows the data{banded}. {caption}".rstrip()
        parts = [embed_figure(figure, caption, name="forecast", kind="large")]
        parts += [paragraph(note, note=True) for note in answer.notes]
        trained_on = read_json(run.folder / "environment.json").get("fingerprint")
        if task == "forecasting" and fingerprint(data) == trained_on:
            times = data.timestamps
    except SACMError as error:
        parts = [paragraph(f"The data of the run give no answer now: {error}")]
    if task == "anomaly":
        return {"Alarms in the test rows": parts}
    calibration: Any = run.calibration  # every forecasting run has one
    shown = {name: tensor.numpy() for name, tensor in calibration.tensors.items()}
    forecasts, truth = shown["shown_forecasts"], shown["shown_truth"]
    count, horizon, channels = forecasts.shape
    rows = shown["shown_rows"][:, None] + np.arange(horizon)
    names = run.shape.columns or [f"channel {place + 1}" for place in range(channels)]
    where = rows + 1 if times is None else times[rows]
    figure = truth_figure(forecasts, truth, where, names)
    caption = f"{count:,} forecasts of {horizon} steps over the last rows of the test part."
    beside = embed_figure(figure, caption, name="truth", kind="large")
    return {"Forecast": parts, "Forecasts and truth": [beside]}


def _results(run: Run) -> dict[str, list[str]]:
    """Errors by channel and step, and the results beside baselines."""
    metrics, task = run.metrics, run.settings.task
    if "test" not in metrics:
        return {"Results": [paragraph("There were no test cases.")]}
    report = metrics["report"]
    what = "cases" if task == "classification" else "windows"
    count = f"{metrics['evaluated_windows']:,} test {what}."
    if share := report.get("unmeasured"):
        count += f" {share:.1%} of the test targets were not measured and do not count."
    parts = [paragraph(count, note=True), _table(*get_task(task).tabulate(metrics))]
    names, cells = tabulate(task, metrics.get("baselines", {}))
    if len(cells) > 1:
        parts.append(_table(("beside baselines", *names), cells))
    if "confusion" in report:
        classes = list(map(str, run.shape.classes))
        counts = [(name, *row) for name, row in zip(classes, report["confusion"], strict=True)]
        parts.append(_table(("true class, predicted as", *classes), counts))
    if task == "forecasting":
        single = run.shape.channels == 1
        steps = report["raw" if single else "scaled"]["step_mae"]
        title = "mean absolute error" + ("" if single else ", z-scored, mean of the channels")
        figure = count_figure(steps, title, "steps ahead")
        parts.append(embed_figure(figure, "Error by steps ahead.", name="steps"))
    return {"Results" if task != "forecasting" else "Errors by channel and by step": parts}


def _repairs(run: Run) -> list[str]:
    """What was found broken in the training data, and what the strategy made of it."""
    decided = run.metrics.get("race", {}).get("sentence")  # the page begins with it
    parts = [paragraph(note) for note in run.metrics.get("notes", ()) if note != decided]
    path = run.folder / "quality.json"
    if not path.exists():
        return parts
    found = read_json(path)
    shares = f"{found['share']:.2%} of the values in {found['rows']:,} rows are broken"
    parts.append(paragraph(f"{shares}, {found['suspect_share']:.2%} are unusual and may be real."))
    kinds = {name: own for name, own in found["shares"].items() if sum(own.values())}
    for own in list(kinds.values())[:1]:
        rows = [
            (name, *(f"{share:.2%}" if share else "" for share in each.values()))
            for name, each in kinds.items()
        ]
        parts.append(_table(("channel", *own), rows))
    return parts


def _table(headings: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    return Table(tuple(headings), tuple(map(tuple, rows))).html()
