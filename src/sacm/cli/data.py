"""`sacm data`: which data sets there are, what to know about them, and how to get them."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sacm.cli.options import AsJson
from sacm.cli.output import show_json

if TYPE_CHECKING:
    from sacm.data.benchmarks.catalogue import CatalogueEntry
    from sacm.data.benchmarks.load import Presence

HELP = """List, describe and fetch the public data sets.

Example: sacm data list
"""

app = typer.Typer(help=HELP, no_args_is_help=True, add_completion=False)


@app.command("list")
def list_command(
    task: Annotated[
        str | None, typer.Option(help="forecasting, classification or anomaly.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """All data sets, and whether each is on this machine.

    Example: sacm data list --task anomaly
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from sacm.data.benchmarks.load import inventory

    found = inventory(task)
    if as_json:
        show_json([describe_presence(place) for place in found])
        return
    console = Console()
    for title, group in groupby(found, key=lambda place: place.entry.task):
        table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
        for heading, width in (("name", 25), ("shape", 24), ("here", 20)):
            table.add_column(heading, no_wrap=True, min_width=width)
        for place in group:
            state = f"present ({place.place})" if place.present else "absent"
            table.add_row(place.entry.name, shape(place.entry), state)
        console.print(table)
    present = sum(place.present for place in found)
    console.print(
        f"{present} of {len(found)} present. Synth-12 is generated and needs no file "
        "(Synth-12@0.3 for another noise level)."
    )


@app.command()
def info(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name from `sacm data list`.")],
    as_json: AsJson = False,
) -> None:
    """Everything known about one data set, and what to beware of.

    Example: sacm data info Weather
    """
    from rich.console import Console
    from rich.table import Table

    from sacm.data.benchmarks.catalogue import find_entry
    from sacm.data.benchmarks.load import presence

    place = presence(find_entry(name))
    record = describe_presence(place)
    if as_json:
        show_json(record)
        return
    facts = record.pop("facts")
    files = record.pop("files", [])
    table = Table(title=place.entry.name, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column()
    for key, value in record.items():
        table.add_row(key.replace("_", " "), format_value(value))
    shown = files[:3]
    if shown:
        table.add_row("download", "\n".join(file["url"] for file in shown))
    if len(files) > len(shown):
        table.add_row("", f"and {len(files) - len(shown)} more files")
    console = Console()
    console.print(table)
    for fact in facts:
        console.print(f"[bold]Note[/bold] {fact}", highlight=False)


@app.command()
def get(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME…", help="Names from `sacm data list`.")
    ],
    as_json: AsJson = False,
) -> None:
    """Fetch data sets into the user's cache, unless they are on this machine already.

    Example: sacm data get ETTh1 BasicMotions
    """
    from sacm.data.benchmarks.catalogue import DatasetEntry, find_entry
    from sacm.data.benchmarks.fetch import fetch
    from sacm.data.benchmarks.load import presence
    from sacm.errors import ArgumentError

    results = []
    for entry in [find_entry(name) for name in names]:
        if not isinstance(entry, DatasetEntry):
            raise ArgumentError(f"{entry.name} is made by its plug-in: there is nothing to fetch.")
        place = presence(entry)
        path = fetch(entry) if place.found is None else place.found.path
        results.append({"name": entry.name, "path": str(path), "fetched": place.found is None})
    if as_json:
        show_json(results)
        return
    for result in results:
        state = "fetched" if result["fetched"] else "already there"
        typer.echo(f"{result['name']}: {state}: {result['path']}")


def describe_presence(place: Presence) -> dict[str, Any]:
    """An entry and where it was found, as plain values."""
    from sacm.data.benchmarks.catalogue import DatasetEntry

    entry = place.entry
    if not isinstance(entry, DatasetEntry):
        return {
            "name": entry.name,
            "task": entry.task,
            "source": place.place,
            "present": place.present,
            "facts": list(entry.facts),
        }
    return {
        "name": entry.name,
        "task": entry.task,
        **sizes(entry),
        "licence": entry.licence,
        "home": entry.home,
        "checksums": entry.checksums,
        "present": place.found is not None,
        "path": None if place.found is None else str(place.found.path),
        "layout": None if place.found is None else place.found.layout.name,
        "facts": list(entry.facts),
        "files": [
            {"url": file.url, "path": file.path, "checksum": file.checksum} for file in entry.files
        ],
    }


def sizes(entry: CatalogueEntry) -> dict[str, Any]:
    """What is particular to the task of an entry."""
    from sacm.data.benchmarks.catalogue import AnomalyEntry, ClassificationEntry, ForecastingEntry

    if isinstance(entry, ForecastingEntry):
        splits = entry.splits(entry.benchmark_rows)
        return {
            "rows": entry.benchmark_rows,
            "channels": entry.channels,
            "sampling": entry.sampling,
            "split_rows": [len(rows) for rows in splits],
            "input_length": entry.input_len,
            "horizons": list(entry.horizons),
        }
    if isinstance(entry, ClassificationEntry):
        return {
            "cases": None if entry.cases is None else list(entry.cases),
            "channels": entry.channels,
            "lengths": list(entry.lengths),
            "classes": entry.classes,
        }
    assert isinstance(entry, AnomalyEntry)
    return {
        "rows": list(entry.rows),
        "channels": entry.channels,
        "anomaly_rate": entry.anomaly_rate,
    }


def shape(entry: CatalogueEntry) -> str:
    """Sizes in a few characters; empty where they are not known before loading."""
    from sacm.data.benchmarks.catalogue import DatasetEntry

    if not isinstance(entry, DatasetEntry):
        return ""
    record = sizes(entry)
    if entry.task == "forecasting":
        return f"{record['rows']:,} x {entry.channels}"
    if entry.task == "classification":
        cases = "by subject" if record["cases"] is None else "/".join(map(str, record["cases"]))
        shortest, longest = record["lengths"]
        length = str(longest) if shortest == longest else f"{shortest}-{longest}"
        return f"{cases} x {entry.channels} x {length}"
    return f"{record['rows'][0]:,}/{record['rows'][1]:,} x {entry.channels}"


def format_value(value: Any) -> str:
    """A value as text."""
    if isinstance(value, list):
        return " / ".join(format_value(item) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return "" if value is None else str(value)
