"""`sacm quality`, `sacm rules` and `sacm score`: what is broken or unreliable in a file."""

from __future__ import annotations

import re
from json import loads
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from sacm.cli.options import AsJson, KeepFile, RulesFile, takes_reading
from sacm.cli.output import note, show_json, show_notes, show_table, write_frame
from sacm.errors import ArgumentError, DataError

_LACKS = ("target", "split", "scaling", "category")  # options that are not of the table
_File = Annotated[str, typer.Argument(metavar="FILE", help="See `sacm data list`, or a file.")]


def _read_share(text: str | float) -> float:
    """A share such as 1% or 0.01."""
    match = re.fullmatch(r"(\d*\.?\d+)(%?)", str(text))
    share = float(match[1]) / (100 if match[2] else 1) if match else 2.0
    if share > 1:
        raise ArgumentError(f"--fail-above must be a share such as 1%, got {text!r}.")
    return share


@takes_reading(without=_LACKS)
def quality(
    data: _File,
    out: Annotated[Path | None, Option(help="Write an HTML report to this file.")] = None,
    repaired: Annotated[Path | None, Option(help="Write the repaired table as CSV.")] = None,
    flags: Annotated[Path | None, Option(help="Write events, or wrong labels, as CSV.")] = None,
    rules: RulesFile = None,
    keep: KeepFile = None,
    repair: Annotated[str, Option(help="What is repaired: fail, all or none.")] = "fail",
    fail_above: Annotated[
        float, Option(parser=_read_share, help="Exit code 1 above this: 1%.")
    ] = 1.0,
    false_events: Annotated[float, Option(help="False events in 10,000 values.")] = 1.0,
    train: Annotated[float | None, Option(help="Share of rows to learn thresholds from.")] = None,
    as_json: AsJson = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Find what is broken in the data: gaps, stuck sensors, spikes, bursts, broken rules.

    In labelled cases (.ts, .npz, a table with --id and --label) it finds wrong labels.

    Example: sacm quality my.csv --out quality.html --repaired clean.csv
    """
    import pandas as pd

    from sacm.cli.labels import judge_labels, read_labelled_cases, record_labels
    from sacm.files import write_atomically
    from sacm.quality.guard import Guard

    outputs = {"report": out, "flags": flags, "repaired": repaired}
    written = {name: path for name, path in outputs.items() if path is not None}
    _check_outputs(data, list(written.values()))
    cases = read_labelled_cases(data, reading)
    if cases is None:
        guard = Guard(rules, false_events, None, repair, keep)
        found: Any = guard.fit_inspect(_read(data, train, reading))
        share, what = found.share, "values are broken"
    elif rules is not None or repaired is not None or train is not None:
        raise ArgumentError(f"--rules, --repaired and --train: {data} has labelled cases.")
    else:
        found = judge_labels(cases, keep)
        share, what = found.flagged.mean(), "labels look wrong"
    if out is not None:
        found.report(out)
    if flags is not None:
        write_atomically(flags, lambda file: found.to_frame().to_csv(file, index=False))
    if repaired is not None:
        table = found.repaired
        if not isinstance(table, pd.DataFrame):  # a data set with a name
            table = pd.DataFrame(found.values, columns=list(found.recording.columns))
        write_atomically(repaired, lambda file: table.to_csv(file, index=False))
    if as_json:
        record = _record_values(found) if cases is None else record_labels(found)
        show_json({**record, "report": out and str(out)})
    else:
        typer.echo(found.summary())
        for name, path in written.items():
            typer.echo(f"{name}: {path}")
    if share > fail_above:
        note(f"{share:.2%} of the {what}, more than --fail-above {100 * fail_above:g}%.")
        raise typer.Exit(1)


def _record_values(quality: Any) -> dict[str, Any]:
    events = quality.to_frame().drop(columns="keep").to_json(orient="records", date_format="iso")
    return {**quality.overview(), "notes": list(quality.recording.notes), "events": loads(events)}


@takes_reading(without=_LACKS)
def rules(
    data: _File,
    out: Annotated[Path | None, Option(help="Write the rules to this file.")] = None,
    *,
    reading: dict[str, Any],
) -> None:
    """Write what the guard learns about each channel as a rules file, to be edited.

    Example: sacm rules my.csv --out rules.yaml
    """
    from sacm.files import write_text
    from sacm.quality.guard import Guard
    from sacm.quality.rules import learnt_rules

    _check_outputs(data, [] if out is None else [out])
    guard = Guard(window=None)
    text = learnt_rules(guard, guard.fit_inspect(_read(data, None, reading)))
    if out is not None:
        write_text(out, text)
    typer.echo(text if out is None else f"rules: {out}\n", nl=False)


def _check_outputs(data: str, paths: list[Path]) -> None:
    """Refuse files that cannot be written, or that would replace the data."""
    for path in paths:
        if path.is_dir() or path.absolute() == Path(data).absolute():
            raise ArgumentError(f"{path} is a folder or holds the data: name another file.")
        if paths.count(path) > 1:
            raise ArgumentError(f"{path} is named for two outputs: name a file for each.")


def _read(data: str, train: float | None, reading: dict[str, Any]) -> Any:
    """Read a file or a data set by name, and say how it was understood."""
    from sacm.data.load import load, names_file, refuse_options
    from sacm.quality.recording import read_recording

    if not names_file(data):
        refuse_options(data, reading)
        return read_recording(load(data), train)
    recording = read_recording(data, train, reading=reading)
    for line in recording.understood:
        note(line)
    return recording


@takes_reading(without=("target", "split", "scaling"))
def score(
    file: _File,
    window: Annotated[int, Option(help="Rows in a window.")] = 96,
    out: Annotated[Path | None, Option(help="Write every window to this CSV file.")] = None,
    as_json: AsJson = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Rank the windows of a series by unreliability, without training anything.

    Every channel is z-scored over the file; a window's score is what the method's spectral filter
    takes away from it. Higher is less reliable. Windows lie side by side.

    Example: sacm score my.csv --window 96 --out windows.csv
    """
    from sacm.data.forecasting import ALL_ROWS
    from sacm.data.load import names_file, resolve
    from sacm.data.scaling import fill_data

    everything = {**reading, "split": ALL_ROWS} if names_file(file) else reading
    data: Any = fill_data(resolve(file, task="forecasting", reading=everything))[0]
    show_notes(data.notes, data.understood)
    ranked = rank_windows(data, window)
    if out is not None:
        write_frame(ranked, out)
        note(f"{len(ranked):,} windows written to {out}.")
    if as_json:
        records = loads(ranked.to_json(orient="records", date_format="iso"))
        show_json({"file": file, "window": window, "windows": records})
        return
    rows: list[Any] = list(ranked.itertuples(index=False, name=None))
    shown = [*rows[:3], ("…",), *rows[-3:]] if len(rows) > 6 else rows
    title = f"{len(ranked):,} windows of {file}, least reliable first"
    show_table(list(ranked.columns), shown, title=title)


def rank_windows(data: Any, window: int) -> Any:
    """A frame of windows, the least reliable first; rows are counted from 1 in each series."""
    import numpy as np
    import pandas as pd

    from sacm import score_windows
    from sacm.data import ChannelScaler

    values = ChannelScaler.fit([data.values]).transform(data.values)
    all_series = data.last_rows(len(values))
    series = {name: rows for name, rows in all_series.items() if len(rows) >= window}
    if not series:
        longest = max(map(len, all_series.values()), default=0)
        raise DataError(f"{data.name} has {longest} rows, fewer than one window of {window}.")
    parts = []
    for name, rows in series.items():
        scores = score_windows(values[rows], window, window)
        first = np.arange(len(scores)) * window
        part: dict[str, Any] = {"series": name} if len(series) > 1 else {}
        part |= {"first_row": first + 1, "last_row": first + window}
        if data.timestamps is not None:
            times = data.timestamps[rows]
            write = pd.Series if data.form is None else data.form.write_times
            part |= {"from": write(times[first]), "to": write(times[first + window - 1])}
        parts.append(pd.DataFrame({**part, "score": scores.astype(np.float64)}))
    order: Any = {"ascending": False, "kind": "stable", "ignore_index": True}
    table = pd.concat(parts).sort_values("score", **order)
    table.insert(0, "rank", table.index + 1)
    return table
