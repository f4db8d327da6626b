"""What commands print: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text


DIGITS = "%.7g"  # what float32 holds


def note(text: str) -> None:
    """A line on standard error."""
    typer.echo(text, err=True)


def show_notes(notes: Iterable[str]) -> None:
    """What there is to know about the data."""
    from sacm.cli.wording import as_options

    for text in notes:
        note(f"Note: {as_options(text)}")


def show_json(record: Any) -> None:
    """JSON on standard output."""
    typer.echo(json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False))


def show_results(task: str, metrics: Mapping[str, Any]) -> None:
    """The test results of a run as a table."""
    from rich.console import Console

    from sacm.tasks import get_task

    if "test" not in metrics:
        note("Note: there are no test cases, so there is nothing to report.")
        return
    if all(value is None for value in metrics["test"].values()):
        report = metrics["report"]
        note(
            f"Nothing to measure by: {report['alarms']:,} alarms in {report['points']:,} test rows."
        )
        return
    table = make_table(*get_task(task).tabulate(metrics))
    table.title = f"test results over {metrics['evaluated_windows']:,} windows"
    Console().print(table)
    show_yardsticks(metrics.get("yardsticks") or {})


def show_yardsticks(yardsticks: Mapping[str, Any]) -> None:
    """The model beside what needs no network, and a sentence where that is better."""
    from rich.console import Console

    rows = yardsticks.get("rows", {})
    if len(rows) > 1:
        names = list(rows["model"])
        table = make_table(
            ("beside yardsticks", *(_YARDSTICK_LABELS.get(name, name) for name in names)),
            [(name, *(row.get(each) for each in names)) for name, row in rows.items()],
        )
        Console().print(table)
    for sentence in yardsticks.get("sentences", ()):
        note(f"Note: {sentence}")


_YARDSTICK_LABELS = {
    "mae": "MAE",
    "mse": "MSE",
    "mase": "MASE",
    "smape": "sMAPE",
    "wape": "WAPE",
    "f1": "F1",
    "f1_pa": "F1 (PA)",
    "auc_pr": "AUC-PR",
    "auc_roc": "AUC-ROC",
    "balanced_accuracy": "balanced accuracy",
    "macro_f1": "macro F1",
    "nll": "log loss",
}


def make_table(
    headings: Sequence[str], rows: Iterable[Sequence[Any]], *, text: bool = False
) -> Table:
    """A first column of names and columns of numbers, or of `text`; None is left blank."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, title_justify="left")
    for position, heading in enumerate(headings):
        side: Any = "right" if position and not text else "left"
        table.add_column(plain_text(heading), justify=side)
    for name, *values in rows:
        table.add_row(plain_text(name), *(plain_text(format_cell(value)) for value in values))
    return table


def plain_text(text: Any) -> Text:
    """Text as it is: square brackets are part of a name, not rich's markup."""
    from rich.text import Text

    return Text(str(text))


def format_cell(value: Any) -> str:
    """A number in a few digits."""
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
