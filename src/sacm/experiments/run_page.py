"""One page about one run: what it is for, how good it is, how it was made, how to use it."""

from __future__ import annotations

from typing import Any

from sacm.experiments.compare_page import record_table
from sacm.files import read_json
from sacm.reports.figures import training_curves
from sacm.reports.page import Section, code_block, embed_figure, figures, page, paragraph
from sacm.reports.table import Table
from sacm.tasks import get_task
from sacm.training import Run

_TASKS = {
    "forecasting": "forecasts {horizon} steps of {channels} channels from the last {length}",
    "classification": "tells {classes} classes apart, {length} steps of {channels} channels",
    "anomaly": "scores rows of {channels} channels in windows of {length}",
}


def run_page(run: Run) -> str:
    """Write the page of a finished run, with its model card, as HTML."""
    settings, shape, metrics = run.settings, run.shape, run.metrics
    what = _TASKS[settings.task].format(
        horizon=shape.horizon,
        channels=shape.channels,
        length=shape.input_len,
        classes=len(shape.classes),
    )
    lead = [f"{settings.backbone} with {settings.strategy} {what}; it learnt from {settings.data}."]
    lead += [_upper(sentence) for sentence in metrics.get("baselines", {}).get("sentences", ())]
    sections = [_results(run), _card(run), _training(run), _settings(run), _use(run)]
    return page(run.folder.name, lead, sections)


def _results(run: Run) -> Section:
    metrics = run.metrics
    if "test" not in metrics:
        return Section("Results", (paragraph("There were no test cases."),))
    headings, rows = get_task(run.settings.task).tabulate(metrics)
    parts = [_table(headings, rows).html()]
    beside = metrics.get("baselines", {}).get("rows", {})
    if len(beside) > 1:
        names = list(beside["model"])
        cells = [(name, *(row.get(each) for each in names)) for name, row in beside.items()]
        parts.append(paragraph("Beside what needs no network, on the same test data:"))
        parts.append(_table(("", *names), cells).html())
    count = f"{metrics['evaluated_windows']:,} test windows, rows or cases."
    return Section("Results", (paragraph(count, note=True), *parts))


def _card(run: Run) -> Section:
    """What a model card says: what it is for, what it knows, and what it does not."""
    settings, shape = run.settings, run.shape
    columns = "unnamed" if shape.columns is None else ", ".join(shape.columns)
    record = {
        "task": settings.task,
        "network": f"{settings.backbone}, {run.metrics['parameters']:,} parameters",
        "trained on": settings.data,
        "channels": columns,
        "time step": shape.frequency or "unknown",
        "seed": settings.seed,
        "chosen by": f"validation {settings.select}, epoch {run.metrics['best_epoch']} of "
        f"{run.metrics['epochs']}",
        "threshold": "" if run.threshold is None else f"{run.threshold:.5g}",
    }
    table = record_table("", {name: value for name, value in record.items() if value != ""})
    limits = (
        "It was tested on one stretch of one data set. Data of another plant, another season or "
        "other units may be answered worse without a sign of it: test it on them first with "
        "`sacm evaluate RUN --data FILE`, and watch its errors in use."
    )
    return Section("Model card", (table.html(kind="settings"), paragraph(limits)))


def _training(run: Run) -> Section:
    strategy, history = run.settings.strategy, run.history
    columns = [name for name in history[0] if name == "train_loss" or name.startswith("val_")]
    drawn = [
        embed_figure(
            training_curves({strategy: [history]}, name), name.replace("_", " "), name=name
        )
        for name in columns
    ]
    return Section("Training", (figures(*drawn),))


def _settings(run: Run) -> Section:
    settings = {k: v for k, v in run.settings.model_dump().items() if v not in (None, {})}
    environment = read_json(run.folder / "environment.json")
    tables = [record_table("setting", settings), record_table("environment", environment)]
    return Section("Settings and environment", tuple(t.html(kind="settings") for t in tables))


def _use(run: Run) -> Section:
    lines = [
        f"sacm predict {run.folder} --data new.csv --out answers.csv",
        f"sacm evaluate {run.folder} --data labelled_or_later.csv",
        f"sacm export {run.folder} --to onnx --out model.onnx",
        f"sacm train --config {run.folder / 'config.json'} --runs again",
    ]
    return Section("How to use it", (code_block("\n".join(lines)),))


def _table(headings: Any, rows: Any) -> Table:
    return Table(tuple(headings), tuple(tuple(row) for row in rows))


def _upper(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
