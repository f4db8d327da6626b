"""`sacm quality`: what is broken in a file, and what it probably was."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sacm.cli.options import AsJson
from sacm.errors import ArgumentError

if TYPE_CHECKING:
    from sacm.quality.quality import Quality


def quality(
    data: Annotated[
        str, typer.Argument(metavar="FILE", help="A file, or a name from `sacm data list`.")
    ],
    out: Annotated[Path | None, typer.Option(help="Write an HTML report to this file.")] = None,
    flags: Annotated[
        Path | None, typer.Option(help="Write the events (channel, kind, rows) to this CSV file.")
    ] = None,
    repaired: Annotated[
        Path | None, typer.Option(help="Write the repaired table to this CSV file.")
    ] = None,
    sensitivity: Annotated[float, typer.Option(help="Above 1 flags more, below 1 less.")] = 1.0,
    train: Annotated[
        float | None, typer.Option(help="Learn thresholds from this share of the rows, the first.")
    ] = None,
    time: Annotated[str | None, typer.Option(help="The time column, if it is not found.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say what is broken in the data: gaps, stuck sensors, spikes, bursts, shifts, limits.

    Example: sacm quality my.csv --out quality.html --repaired clean.csv
    """
    from sacm.cli.output import show_json
    from sacm.cli.runs import as_user_error, write_file
    from sacm.quality.inspect import inspect

    for path in filter(None, (out, flags, repaired)):
        if path.is_dir():
            raise ArgumentError(f"{path} is a folder: name a file in it.")
    with as_user_error():
        found = inspect(_load(data), train, sensitivity, time=time)
        if out is not None:
            found.report(out)
    if flags is not None:
        write_file(flags, lambda file: found.to_frame().to_csv(file, index=False))
    if repaired is not None:
        write_file(repaired, lambda file: _write_repaired(found, file))
    if as_json:
        show_json(_record(found, out))
        return
    typer.echo(str(found))
    for name, written in (("report", out), ("flags", flags), ("repaired", repaired)):
        if written is not None:
            typer.echo(f"{name}: {written}")


def _load(data: str) -> Any:
    from sacm.data.benchmarks.load import load, names_file

    return Path(data) if names_file(data) else load(data)


def _write_repaired(found: Quality, file: Path) -> None:
    import pandas as pd

    table = found.repaired
    if not isinstance(table, pd.DataFrame):
        table = pd.DataFrame(found.values, columns=list(found.subject.columns))
        if found.subject.times is not None:
            table.insert(0, "time", found.subject.times)
    table.to_csv(file, index=False, float_format="%.7g")


def _record(found: Quality, out: Path | None) -> dict[str, Any]:
    return {
        "name": found.subject.name,
        "rows": len(found.flags),
        "share": found.share,
        "shares": found.shares(),
        "unjudged": found.guard.unjudged_,
        "notes": list(found.subject.notes),
        "events": [
            {
                "channel": each.channel,
                "kind": each.kind,
                "first": each.first,
                "last": each.last,
                "severity": each.severity if each.severity < float("inf") else None,
                "series": each.series,
                **(
                    {}
                    if each.first_time is None
                    else {"first_time": str(each.first_time), "last_time": str(each.last_time)}
                ),
            }
            for each in found.events
        ],
        "report": None if out is None else str(out),
    }
