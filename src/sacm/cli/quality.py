"""`sacm quality`: what is broken in a file, and what it probably was."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from sacm.cli.options import AsJson, takes_reading
from sacm.errors import ArgumentError
from sacm.settings import READING, TABLE_READING

if TYPE_CHECKING:
    from sacm.quality.quality import Quality

_STEPS = 4
_PATIENCE = 1.0  # seconds until a bar is drawn
_BAR = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}"


_LACKS = tuple(name for name in READING if name not in TABLE_READING)


@takes_reading(without=_LACKS)
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
    as_json: AsJson = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Say what is broken in the data: gaps, stuck sensors, spikes, bursts, shifts, limits.

    Example: sacm quality my.csv --out quality.html --repaired clean.csv
    """
    from sacm.cli.output import show_json
    from sacm.cli.runs import as_user_error, write_file

    _check_outputs(data, [path for path in (out, flags, repaired) if path is not None])
    with as_user_error():
        found = _inspect(data, train, sensitivity, reading)
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


def _check_outputs(data: str, paths: list[Path]) -> None:
    """Refuse files that cannot be written, or that would replace one another or the data."""
    for path in paths:
        if path.is_dir():
            raise ArgumentError(f"{path} is a folder: name a file in it.")
        if path.absolute() == Path(data).absolute():
            raise ArgumentError(f"{path} holds the data: name another file to write to.")
    if len({path.absolute() for path in paths}) < len(paths):
        raise ArgumentError(f"{paths[-1]} is named twice: name a file for each output.")


def _inspect(
    data: str, train: float | None, sensitivity: float, reading: dict[str, Any]
) -> Quality:
    """Inspect, with a bar on a terminal if it takes long."""
    from tqdm import tqdm

    from sacm.cli.reading import show_understood
    from sacm.data.load import load, names_file, refuse_options
    from sacm.quality.inspect import inspect_subject
    from sacm.quality.reading import read_subject

    # Without a terminal `disable=None` draws nothing; steps that take no time draw nothing either.
    with tqdm(
        total=_STEPS,
        desc="reading",
        bar_format=_BAR,
        disable=None,
        delay=_PATIENCE,
        leave=False,
    ) as bar:
        begun: list[str] = []

        def tell(step: str, share: float = 0.0) -> None:
            if step not in begun:
                begun.append(step)
                bar.set_description_str(step, refresh=False)
            bar.update(len(begun) - 1 + share - bar.n)

        if names_file(data):
            read = read_subject(data, train, reading=reading)
        else:
            refuse_options(data, reading)
            read = read_subject(load(data), train)
        show_understood(read.understood, without=_LACKS)
        return inspect_subject(read, sensitivity, tell)


def _write_repaired(found: Quality, file: Path) -> None:
    import pandas as pd

    table = found.repaired
    if not isinstance(table, pd.DataFrame):
        table = pd.DataFrame(_repaired_rows(found), columns=list(found.subject.columns))
        if found.subject.times is not None:
            table.insert(0, "time", found.subject.times)
        if len(set(found.subject.labels)) > 1:
            lengths = [len(piece) for piece in found.subject.pieces]
            table.insert(0, "series", np.repeat(found.subject.labels, lengths))
    table.to_csv(file, index=False)


def _repaired_rows(found: Quality) -> np.ndarray:
    """Repaired rows `[T, C]`; test rows of telemetry stay as they are."""
    from sacm.data.datasets import AnomalyData

    repaired = found.repaired
    if isinstance(repaired, AnomalyData):
        return np.concatenate([repaired.train, repaired.test])
    if isinstance(repaired, np.ndarray):
        return repaired.reshape(found.flags.shape)
    return np.where(found.flags > 0, found.values, found.subject.values)


def _record(found: Quality, out: Path | None) -> dict[str, Any]:
    return {
        **found.overview(),
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
