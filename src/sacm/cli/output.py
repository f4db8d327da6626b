"""What commands print: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from sacm.types import TaskName

DIGITS = "%.7g"  # what float32 holds

ANOMALY_ROWS = (
    ("plain", "precision", "recall", "f1"),
    ("point-adjusted", "precision_pa", "recall_pa", "f1_pa"),
    ("point-adjusted, random scores", None, None, "f1_pa_random"),
    ("range-based", None, None, "f1_range"),
    ("affiliation", None, None, "f1_affiliation"),
    ("best threshold (an upper bound)", None, None, "f1_best"),
)
RANKINGS = (("AUC-PR", "auc_pr"), ("AUC-ROC", "auc_roc"), ("VUS-PR", "vus_pr"))


def note(text: str) -> None:
    """A line on standard error."""
    typer.echo(text, err=True)


def show_notes(notes: Iterable[str]) -> None:
    """What there is to know about the data."""
    for text in notes:
        note(f"Note: {text}")


def show_json(record: Any) -> None:
    """JSON on standard output."""
    typer.echo(json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False))


def show_results(task: str, metrics: Mapping[str, Any]) -> None:
    """The test results of a run as a table."""
    from rich.console import Console

    if "test" not in metrics:
        note("Note: there are no test cases, so there is nothing to report.")
        return
    if all(value is None for value in metrics["test"].values()):
        report = metrics["report"]
        note(
            f"Nothing to measure by: {report['alarms']:,} alarms in {report['points']:,} test rows."
        )
        return
    tables = {
        "forecasting": forecasting_table,
        "classification": classification_table,
        "anomaly": anomaly_table,
    }
    table = tables[task](metrics)
    table.title = f"test results over {metrics['evaluated_windows']:,} windows"
    Console().print(table)


def forecasting_table(metrics: Mapping[str, Any]) -> Table:
    """Errors in both units."""
    report = metrics["report"]
    rows = [
        (name.upper(), report["scaled"][name], report["raw"][name])
        for name in ("mae", "mse", "rmse")
    ]
    extra = [(label, value, None) for label, value in registered_values(metrics, "forecasting")]
    return make_table(("error", "z-scored", "raw units"), [*rows, *extra])


def classification_table(metrics: Mapping[str, Any]) -> Table:
    """One row a measure."""
    rows = [(name.replace("_", " "), value) for name, value in metrics["test"].items()]
    return make_table(("measure", "value"), rows)


def anomaly_table(metrics: Mapping[str, Any]) -> Table:
    """Every F1 beside what random scores reach, then what needs no threshold."""
    row = metrics["test"]
    rows: list[tuple[Any, ...]] = [
        (name, *(None if key is None else row[key] for key in keys)) for name, *keys in ANOMALY_ROWS
    ]
    rows += [(f"{name}, no threshold", None, None, row[key]) for name, key in RANKINGS]
    rows += [(label, None, None, value) for label, value in registered_values(metrics, "anomaly")]
    return make_table(("measure", "precision", "recall", "F1 or area"), rows)


def registered_values(metrics: Mapping[str, Any], task: TaskName) -> list[tuple[str, Any]]:
    """Label and value of the metrics that plug-ins have added to a run's row."""
    from sacm.metrics.catalogue import registered_metrics

    row = metrics["test"]
    return [
        (known.label, row[known.name]) for known in registered_metrics(task) if known.name in row
    ]


def make_table(
    headings: Sequence[str], rows: Iterable[Sequence[Any]], *, text: bool = False
) -> Table:
    """A first column of names and columns of numbers, or of `text`; None is left blank."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, title_justify="left")
    for position, heading in enumerate(headings):
        table.add_column(heading, justify="right" if position and not text else "left")
    for name, *values in rows:
        table.add_row(str(name), *(format_cell(value) for value in values))
    return table


def format_cell(value: Any) -> str:
    """A number in a few digits."""
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
