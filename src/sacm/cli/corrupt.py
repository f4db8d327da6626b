"""`sacm corrupt`: a copy of a file with faults in known places."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from sacm.cli.options import AsJson
from sacm.errors import ArgumentError

if TYPE_CHECKING:
    from sacm.faults.series import BrokenSeries
    from sacm.quality.subject import Subject

_SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
_ENDINGS = (*_SEPARATORS, ".parquet", ".npy")


def corrupt(
    data: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="A table of rows in time.")
    ] = None,
    kind: Annotated[str, typer.Option(help="The fault: see --list.")] = "mix",
    ratio: Annotated[float, typer.Option(help="Share of the values to break.")] = 0.3,
    severity: Annotated[float, typer.Option(help="Factor of all sizes.")] = 1.0,
    channels: Annotated[
        str, typer.Option(help="Columns to break, separated by commas. Default: all.")
    ] = "",
    seed: Annotated[int, typer.Option(help="Of places and sizes.", min=0)] = 0,
    out: Annotated[Path | None, typer.Option(help="Where the broken table goes.")] = None,
    time: Annotated[str | None, typer.Option(help="The time column, if it is not found.")] = None,
    listing: Annotated[bool, typer.Option("--list", help="Show the faults.")] = False,
    as_json: AsJson = False,
) -> None:
    """Break a file on purpose, and write beside it which values were broken and how.

    Example: sacm corrupt my.csv --kind stuck --ratio 0.3 --out bad.csv
    """
    from sacm.cli.output import show_json
    from sacm.cli.runs import as_user_error, write_file

    if listing:
        _show_faults(as_json)
        return
    if data is None or out is None:
        raise ArgumentError("name a file and where its broken copy goes: --out bad.csv.")
    truth = out.with_name(f"{out.stem}.truth.csv")
    _check_paths(data, out, truth)
    with as_user_error():
        subject = _read(data, time)
        broken = _break(subject, kind, ratio, severity, channels, seed)
    write_file(out, lambda file: _write_table(subject, broken, file, out.suffix))
    write_file(truth, lambda file: _truth_table(subject, broken).to_csv(file, index=False))
    share = float(broken.broken.mean())
    if as_json:
        show_json({"out": str(out), "truth": str(truth), "share": share, "kind": kind})
        return
    typer.echo(f"{share:.1%} of the values are broken ({kind}, seed {seed}).")
    typer.echo(f"broken: {out}")
    typer.echo(f"truth: {truth}")


def _show_faults(as_json: bool) -> None:
    from sacm.cli.output import show_json, show_texts
    from sacm.faults.catalogue import FAULTS

    rows = [(name, fault.title) for name, fault in FAULTS.items() if fault.series or fault.parts]
    if as_json:
        show_json([{"kind": name, "what": title} for name, title in rows])
        return
    show_texts(("kind", "what"), rows)


def _check_paths(data: Path, out: Path, truth: Path) -> None:
    """Refuse what cannot be read, and outputs that cannot be written or would replace the data."""
    if not data.is_file():
        raise ArgumentError(f"{data}: there is no such file.")
    if out.suffix.lower() not in _ENDINGS:
        raise ArgumentError(f"--out {out}: the file must end in {', '.join(_ENDINGS)}.")
    for path in (out, truth):
        if path.is_dir():
            raise ArgumentError(f"{path} is a folder: name a file in it.")
        if path.absolute() == data.absolute():
            raise ArgumentError(f"{path} holds the data: name another file to write to.")


def _read(data: Path, time: str | None) -> Subject:
    from sacm.quality.reading import read_subject

    return read_subject(data, time=time)


def _break(
    subject: Subject, kind: str, ratio: float, severity: float, channels: str, seed: int
) -> BrokenSeries:
    """Every series of the table by itself."""
    from sacm.faults.series import BrokenSeries, break_series

    named = [name.strip() for name in channels.split(",") if name.strip()]
    for name in named:
        if name not in subject.columns:
            known = ", ".join(subject.columns)
            raise ArgumentError(f"--channels: there is no column {name!r}: use {known}.")
    places = [subject.columns.index(name) for name in named] or None
    found = [
        break_series(
            subject.values[piece.start : piece.stop],
            kind,
            ratio,
            severity=severity,
            channels=places,
            seed=seed + number,
        )
        for number, piece in enumerate(subject.pieces)
    ]
    return BrokenSeries(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def _write_table(subject: Subject, broken: BrokenSeries, file: Path, ending: str) -> None:
    import pandas as pd

    table: Any = subject.restore(broken.values, broken.broken)
    if ending.lower() == ".npy":
        with file.open("wb") as stream:  # NumPy would add an ending to the name
            np.save(stream, np.asarray(table))
        return
    frame = table if isinstance(table, pd.DataFrame) else _as_frame(table, subject)
    if ending.lower() == ".parquet":
        frame.to_parquet(file, index=False)
    else:
        frame.to_csv(file, sep=_SEPARATORS[ending.lower()], index=False)


def _truth_table(subject: Subject, broken: BrokenSeries) -> Any:
    """The table with the kind of the fault in place of broken values; healthy ones are empty."""
    import pandas as pd

    from sacm.faults.series import series_kinds

    names = np.array(["", *series_kinds()[1:]], dtype=object)
    everywhere = np.ones(broken.kinds.shape, dtype=bool)
    codes: Any = subject.restore(broken.kinds.astype(float), everywhere)
    frame = codes if isinstance(codes, pd.DataFrame) else _as_frame(codes, subject)
    frame = frame.copy()
    for column in subject.columns:
        frame[column] = names[frame[column].to_numpy().astype(int)]
    return frame


def _as_frame(array: Any, subject: Subject) -> Any:
    import pandas as pd

    values = np.asarray(array)
    return pd.DataFrame(values.reshape(len(values), -1), columns=list(subject.columns))
