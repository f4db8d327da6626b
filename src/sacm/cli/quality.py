"""`sacm quality` and `sacm rules`: what is broken in a file, and what was learnt about it."""

from __future__ import annotations

from json import loads
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from sacm.cli.options import AsJson, KeepFile, RulesFile, takes_reading
from sacm.errors import ArgumentError
from sacm.settings import READING, TABLE_READING

if TYPE_CHECKING:
    from sacm.quality.recording import Recording
    from sacm.quality.result import Quality

_LACKS = tuple(name for name in READING if name not in TABLE_READING)
_File = Annotated[
    str, typer.Argument(metavar="FILE", help="A file, or a name from `sacm data list`.")
]
_Train = Annotated[
    float | None,
    typer.Option(help="Learn thresholds from this first share of the rows, such as 0.7."),
]
_FalseEvents = Annotated[
    float, typer.Option(help="False events to expect in 10,000 values; a higher number finds more.")
]


def _read_share(text: str | float) -> float:
    """A share such as 1% or 0.01."""
    digits = str(text)
    try:
        share = float(digits.removesuffix("%")) / (100 if digits.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise ArgumentError(f"--fail-above must be a share such as 1%, got {text!r}.")
    return share


@takes_reading(without=_LACKS)
def quality(
    data: _File,
    out: Annotated[Path | None, typer.Option(help="Write an HTML report to this file.")] = None,
    repaired: Annotated[
        Path | None, typer.Option(help="Write the repaired table to this CSV file.")
    ] = None,
    flags: Annotated[
        Path | None, typer.Option(help="Write the events, or suspicious cases, to this CSV file.")
    ] = None,
    rules: RulesFile = None,
    keep: KeepFile = None,
    repair: Annotated[str, typer.Option(help="What is repaired: fail, all or none.")] = "fail",
    fail_above: Annotated[
        float,
        typer.Option(
            parser=_read_share, help="Exit with code 1 if a larger share is broken, such as 1%."
        ),
    ] = 1.0,
    false_events: _FalseEvents = 1.0,
    train: _Train = None,
    as_json: AsJson = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Find what is broken in the data: gaps, stuck sensors, spikes, bursts, broken rules.

    In labelled cases (.ts, .npz, a table with --id and --label) it finds wrong labels.

    Example: sacm quality my.csv --out quality.html --repaired clean.csv
    """
    from sacm.cli.labels import judge_labels, read_labelled_cases
    from sacm.cli.output import show_json
    from sacm.files import write_atomically
    from sacm.quality.guard import Guard

    _check_outputs(data, [path for path in (out, flags, repaired) if path is not None])
    cases = read_labelled_cases(data, reading)
    if cases is not None:
        if rules is not None or repaired is not None or train is not None:
            raise ArgumentError(f"--rules, --repaired and --train: {data} has labelled cases.")
        share = judge_labels(cases, out=out, flags=flags, keep=keep, as_json=as_json)
        _fail_above(share, fail_above, "labels look wrong")
        return
    guard = Guard(rules, false_events, None, repair, keep)
    found = guard.inspect(_read(data, train, reading))
    if out is not None:
        found.report(out)
    if flags is not None:
        write_atomically(flags, lambda file: found.to_frame().to_csv(file, index=False))
    if repaired is not None:
        write_atomically(repaired, lambda file: _write_repaired(found, file))
    if as_json:
        events = found.to_frame().drop(columns="keep").to_json(orient="records", date_format="iso")
        notes = list(found.recording.notes)
        report = None if out is None else str(out)
        show_json({**found.overview(), "notes": notes, "events": loads(events), "report": report})
    else:
        typer.echo(found.summary())
        for name, written in (("report", out), ("flags", flags), ("repaired", repaired)):
            if written is not None:
                typer.echo(f"{name}: {written}")
    _fail_above(found.share, fail_above, "values are broken")


@takes_reading(without=_LACKS)
def rules(
    data: _File,
    out: Annotated[Path | None, typer.Option(help="Write the rules to this file.")] = None,
    false_events: _FalseEvents = 1.0,
    train: _Train = None,
    *,
    reading: dict[str, Any],
) -> None:
    """Write what the guard learns about each channel as a rules file, to be edited.

    Example: sacm rules my.csv --out rules.yaml
    """
    from sacm.files import write_atomically
    from sacm.quality.guard import Guard
    from sacm.quality.rules import learnt_rules

    _check_outputs(data, [] if out is None else [out])
    guard = Guard(false_events=false_events, window=None)
    text = learnt_rules(guard, guard.inspect(_read(data, train, reading)))
    if out is None:
        typer.echo(text, nl=False)
        return
    write_atomically(out, lambda file: file.write_text(text, encoding="utf-8"))
    typer.echo(f"rules: {out}")


def _fail_above(share: float, limit: float, what: str) -> None:
    """End with exit code 1 if the share is above the limit."""
    from sacm.cli.output import note

    if share > limit:
        note(f"{share:.2%} of the {what}, more than --fail-above {limit:.6g}.")
        raise typer.Exit(1)


def _check_outputs(data: str, paths: list[Path]) -> None:
    """Refuse files that cannot be written, or that would replace one another or the data."""
    for path in paths:
        if path.is_dir():
            raise ArgumentError(f"{path} is a folder: name a file in it.")
        if path.absolute() == Path(data).absolute():
            raise ArgumentError(f"{path} holds the data: name another file to write to.")
    if len({path.absolute() for path in paths}) < len(paths):
        raise ArgumentError(f"{paths[-1]} is named twice: name a file for each output.")


def _read(data: str, train: float | None, reading: dict[str, Any]) -> Recording:
    """Read a file or a data set by name, and say how it was understood."""
    from sacm.cli.output import show_understood
    from sacm.data.load import load, names_file, refuse_options
    from sacm.quality.recording import read_recording

    if names_file(data):
        recording = read_recording(data, train, reading=reading)
    else:
        refuse_options(data, reading)
        recording = read_recording(load(data), train)
    show_understood(recording.understood, without=_LACKS)
    return recording


def _write_repaired(found: Quality, file: Path) -> None:
    """Write the repaired table; of a data set its rows with their series and times."""
    import pandas as pd

    table, recording = found.repaired, found.recording
    if not isinstance(table, pd.DataFrame):
        table = pd.DataFrame(found.values, columns=list(recording.columns))
        if recording.times is not None:
            table.insert(0, "time", recording.times)
        if len(set(recording.labels)) > 1:
            lengths = list(map(len, recording.segments))
            table.insert(0, "series", np.repeat(recording.labels, lengths))
    table.to_csv(file, index=False)
