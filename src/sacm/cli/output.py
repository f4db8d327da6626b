"""What commands print: how data were read, notes, results.

Results go to standard output, everything else to standard error.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from sacm.data.datasets import AnyData
    from sacm.settings import RunSettings

DIGITS = "%.7g"  # what float32 holds
_RELATIVE = {"mase": "MASE", "smape": "sMAPE", "wape": "WAPE"}


def note(text: str) -> None:
    """A line on standard error."""
    typer.echo(text, err=True)


def show_notes(notes: Iterable[str]) -> None:
    """What there is to know about the data."""
    for text in notes:
        note(f"Note: {text}")


def show_understood(lines: Iterable[str], *, without: Sequence[str] = ()) -> None:
    """Say how a table was read, on standard error; options that a command lacks are not named."""
    for line in lines:
        for name in without:
            line = line.replace(f" (--{name})", "")
        note(line)


def show_reading(data: AnyData, settings: RunSettings | None = None) -> None:
    """Say how data were read, and into what they are cut for a run.

    Args:
        data: What was read; data sets of the catalogue have nothing to say.
        settings: What was asked of the run; None if nothing is trained.
    """
    from sacm.data.datasets import ClassificationData

    if not isinstance(data, ClassificationData) and data.understood:
        lacks = ("frequency",) if data.task == "anomaly" else ()
        show_understood(data.understood, without=lacks)
        if settings is not None:
            show_understood(describe_cut(data, settings))
    show_notes(data.notes)


def describe_cut(data: Any, settings: RunSettings) -> list[str]:
    """The rows of each split, and the length of windows with the reason for it."""
    from sacm.tasks import get_task

    task = get_task(settings.task)
    resolved = task.resolve(settings, data)
    lines = []
    if settings.task == "forecasting":
        parts = ("training", "validation", "test")
        counts = [f"{len(rows):,} {name}" for rows, name in zip(data.splits, parts, strict=True)]
        lines.append(f"split (--split): {', '.join(counts)} rows")
        windows = (
            f"{resolved.input_len} rows in (--input-len), {resolved.horizon} ahead (--horizon)"
        )
        short = short_series(data, resolved.input_len + resolved.horizon)
        if short:
            named = ", ".join(map(repr, short[:5])) + (" …" if len(short) > 5 else "")
            lines.append(f"too short to train on ({len(short)} of the series): {named}")
    else:
        lines.append(f"split (--split): {len(data.train):,} training, {len(data.test):,} test rows")
        windows = f"{resolved.input_len} rows (--input-len)"
    reason = task.explain_lengths(settings, data)
    lines.append(f"windows: {windows}" + (f"; {reason}" if reason else ""))
    return lines


def short_series(data: Any, needed: int) -> list[str]:
    """Series of which no training piece holds a window of `needed` rows; none if there is one."""
    longest: dict[str, int] = {}
    for segment in data.segments:
        rows = min(segment.stop, data.splits.train.stop) - segment.start
        longest[segment.name] = max(longest.get(segment.name, 0), rows)
    return [name for name, rows in longest.items() if rows < needed] if len(longest) > 1 else []


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
    show_baselines(metrics.get("baselines") or {}, scaled=task == "forecasting")
    if table := metrics.get("race", {}).get("table"):
        headings = ("candidate", "MAE", "weight", "steps", "seconds")
        rows = [tuple(row.values()) for row in table]
        show_table(headings, rows, title="candidates by validation MAE, z-scored")


def show_baselines(baselines: Mapping[str, Any], *, scaled: bool = False) -> None:
    """The model beside what needs no network, and a sentence where that is better.

    `scaled` says that errors which are not relative are z-scored.
    """
    from sacm.metrics.catalogue import METRICS

    rows = baselines.get("rows", {})
    if len(rows) > 1:
        names = list(rows["model"])
        labels = {name: metric.label for name, metric in METRICS.items()}
        if scaled:  # relative ones first: they need no unit
            names = sorted(names, key=lambda name: name not in _RELATIVE)
            labels = {name: f"{label}, z-scored" for name, label in labels.items()}
        labels = labels | _RELATIVE
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
