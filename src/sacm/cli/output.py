"""What commands print: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import typer

DIGITS = "%.7g"  # what float32 holds
_RELATIVE = {"mase": "MASE", "smape": "sMAPE", "wape": "WAPE"}


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
    title = f"test results over {metrics['evaluated_windows']:,} windows"
    show_table(*get_task(task).tabulate(metrics), title=title)
    if share := metrics["report"].get("unmeasured"):
        note(f"{share:.1%} of the test targets were not measured and do not count.")
    show_baselines(metrics.get("baselines") or {})


def show_baselines(baselines: Mapping[str, Any]) -> None:
    """The model beside what needs no network, and a sentence where that is better."""
    from sacm.metrics.catalogue import METRICS

    rows = baselines.get("rows", {})
    if len(rows) > 1:
        names = list(rows["model"])
        labels = _RELATIVE | {name: metric.label for name, metric in METRICS.items()}
        show_table(
            ("beside baselines", *(labels.get(name, name) for name in names)),
            [(name, *(row.get(each) for each in names)) for name, row in rows.items()],
        )
    for sentence in baselines.get("sentences", ()):
        note(f"Note: {sentence}")


def show_table(
    headings: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str = "", words: int = 1
) -> None:
    """Print a table: first `words` columns of words, then columns of numbers.

    None is left blank, and so are cells that a row has not.
    """
    from sacm.reports.table import Table

    lines = ([format_cell(value) for value in row] for row in rows)
    whole = tuple((*cells, *[""] * (len(headings) - len(cells))) for cells in lines)
    Table(tuple(headings), whole, title, words).print()


def show_texts(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table of texts, which are wrapped."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD)
    for heading in headings:
        table.add_column(escape(heading), overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    Console().print(table)


def format_cell(value: Any) -> str:
    """A number in a few digits."""
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
