"""What commands print and write: results on standard output, all else on standard error."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from sacm.errors import ArgumentError
from sacm.settings import RunSettings

DIGITS = "%.7g"  # what float32 holds


def note(text: str) -> None:
    """A line on standard error."""
    typer.echo(text, err=True)


def show_notes(notes: Iterable[str], understood: Iterable[str] = ()) -> None:
    """How data were understood, and what else there is to know about them."""
    for text in (*understood, *(f"Note: {text}" for text in notes)):
        note(text)


def read_data(settings: RunSettings, runs: Path) -> Any:
    """The data of settings, once it is sure that runs can be kept; says how they were read."""
    from sacm.data import resolve

    check_writable(runs)
    data: Any = resolve(settings.data, task=settings.task, reading=settings.reading())
    understood = getattr(data, "understood", ())
    show_notes(data.notes, [*understood, *describe_cut(data, settings)] if understood else ())
    return data


def describe_cut(data: Any, settings: RunSettings) -> list[str]:
    """The rows of each split, series that are too short, and the length of windows."""
    from sacm.tasks import get_task

    task = get_task(settings.task)
    resolved, reason = task.resolve(settings, data), task.explain_lengths(settings, data)
    data, ending = task.divide(resolved, data), f"; {reason}" if reason else ""
    if settings.task != "forecasting":
        counts = f"split (--split): {len(data.train):,} training, {len(data.test):,} test rows"
        return [counts, f"windows: {resolved.input_len} rows (--input-len){ending}"]
    counts = "{:,} training, {:,} validation, {:,} test rows".format(*map(len, data.splits))
    lengths = f"{resolved.input_len} rows in (--input-len), {resolved.horizon} ahead (--horizon)"
    lines = [f"split (--split): {counts}", f"windows: {lengths}{ending}"]
    needed, stop = resolved.input_len + resolved.horizon, data.splits.train.stop
    enough = {each.name for each in data.segments if min(each.stop, stop) - each.start >= needed}
    short = list(dict.fromkeys(s.name for s in data.segments if s.name not in enough))
    if short and enough:
        named = ", ".join(map(repr, short[:5])) + (" …" if len(short) > 5 else "")
        lines.append(f"too short to train on ({len(short)} of the series): {named}")
    return lines


def show_json(record: Any) -> None:
    """JSON on standard output."""
    typer.echo(json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False))


def show_results(task: str, metrics: Mapping[str, Any]) -> None:
    """The test results of a run as a table, beside baselines and candidates."""
    from sacm.tasks import get_task
    from sacm.tasks.baselines import compare_with_baselines, tabulate

    if "test" not in metrics:
        note("Note: there are no test cases, so there is nothing to report.")
        return
    report = metrics["report"]
    if all(value is None for value in metrics["test"].values()):
        alarms, points = report["alarms"], report["points"]
        note(f"Nothing to measure by: {alarms:,} alarms in {points:,} test rows.")
        return
    what = "cases" if task == "classification" else "windows"
    title = f"test results over {metrics['evaluated_windows']:,} {what}"
    show_table(*get_task(task).tabulate(metrics), title=title)
    if share := report.get("unmeasured"):
        note(f"{share:.1%} of the test targets were not measured and do not count.")
    baselines = metrics.get("baselines") or {}
    names, rows = tabulate(task, baselines)
    if len(rows) > 1:
        show_table(("beside baselines", *names), rows)
    for sentence in compare_with_baselines(baselines):
        note(sentence)
    if table := metrics.get("race", {}).get("table"):
        headings = ("candidate", "MAE", "weight", "steps", "seconds")
        title = "candidates by validation MAE, z-scored"
        show_table(headings, [tuple(row.values()) for row in table], title=title)


def show_table(
    headings: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str = "", words: int = 1
) -> None:
    """Print a table: `words` columns of words, then numbers; None and what a row lacks is blank."""
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

    table = Table(*map(escape, headings), box=SIMPLE_HEAD)
    for row in rows:
        table.add_row(*map(escape, row))
    Console().print(table)


def format_cell(value: Any) -> str:
    """A number in a few digits."""
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def check_writable(folder: Path) -> None:
    """Refuse a folder for results before any work is done for them."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError(f"{folder} cannot be made: {error.strerror}.") from None


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure as the kind of image that the name of its file asks for."""
    from sacm.files import write_atomically

    write_atomically(path, lambda file: figure.savefig(file, format=path.suffix[1:], dpi=150))


def write_frame(frame: Any, path: Path) -> None:
    """Write a table as CSV."""
    from sacm.files import write_atomically

    write_atomically(path, lambda file: frame.to_csv(file, index=False, float_format=DIGITS))
