"""`sacm data`: which data sets there are, what to know about them, and how to get them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from sacm.cli.options import AsJson
from sacm.cli.output import show_json

app = typer.Typer(
    help="List, describe and fetch the public data sets.\n\nExample: sacm data list",
    no_args_is_help=True,
    add_completion=False,
)
_SHOWN_FILES = 3


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

    from sacm.data.load import TASK_NAMES, names

    tasks = TASK_NAMES if task is None else (task,)
    records = {each: [describe(name) for name in names(each)] for each in tasks}
    every = [record for group in records.values() for record in group]
    if as_json:
        show_json([record for record, _ in every])
        return
    console = Console()
    for title, group in records.items():
        table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
        for heading, width in (("name", 25), ("shape", 24), ("here", 20)):
            table.add_column(heading, no_wrap=True, min_width=width)
        for record, shape in group:
            here = f"present ({record['source']})" if record["present"] else "absent"
            table.add_row(record["name"], shape, here)
        console.print(table)
    present = sum(record["present"] for record, _ in every)
    console.print(
        f"{present} of {len(every)} present. Synth-12 is generated and needs no file "
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

    record, _ = describe(name)
    if as_json:
        show_json(record)
        return
    facts, files = record.pop("facts"), record.pop("files", [])
    table = Table(title=record["name"], show_header=False)
    table.add_column(no_wrap=True)
    table.add_column()
    for key, value in record.items():
        table.add_row(key.replace("_", " "), format_value(value))
    if files:
        table.add_row("download", "\n".join(file["url"] for file in files[:_SHOWN_FILES]))
    if len(files) > _SHOWN_FILES:
        table.add_row("", f"and {len(files) - _SHOWN_FILES} more files")
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
    from sacm_lab.datasets.catalogue import public_dataset
    from sacm_lab.datasets.download import fetch

    results = []
    for dataset in [public_dataset(name) for name in names]:
        location = dataset.locate()
        path = fetch(dataset) if location is None else location.path
        results.append({"name": dataset.name, "path": str(path), "fetched": location is None})
    if as_json:
        show_json(results)
        return
    for result in results:
        state = "fetched" if result["fetched"] else "already there"
        typer.echo(f"{result['name']}: {state}: {result['path']}")


def describe(name: str) -> tuple[dict[str, Any], str]:
    """A data set and where it was found as plain values, and its sizes in a few characters."""
    from sacm.data.load import find
    from sacm_lab.datasets.public import PublicDataset

    dataset = find(name)
    record: dict[str, Any] = {"name": dataset.name, "task": dataset.task}
    facts = list(dataset.facts)
    if not isinstance(dataset, PublicDataset):
        return {**record, "source": "plug-in", "present": True, "facts": facts}, ""
    location = dataset.locate()
    record |= dataset.sizes() | {
        "licence": dataset.licence,
        "home": dataset.home,
        "checksums": dataset.checksums,
        "present": location is not None,
        "source": None if location is None else location.place,
        "path": None if location is None else str(location.path),
        "layout": None if location is None else location.layout.name,
        "facts": facts,
        "files": [
            {"url": file.url, "path": file.path, "checksum": file.checksum}
            for file in dataset.files
        ],
    }
    return record, dataset.shape()


def format_value(value: Any) -> str:
    """A value as text."""
    if isinstance(value, list):
        return " / ".join(format_value(item) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return "" if value is None else str(value)
