"""`sacm corrupt`: a copy of a table with faults, and a record of which values were corrupted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from sacm.cli.options import AsJson
from sacm.errors import ArgumentError, DataError

if TYPE_CHECKING:
    import pandas as pd

_SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
_ENDINGS = (*_SEPARATORS, ".parquet", ".npy")


def corrupt(
    data: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="A table of rows in time.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Where the corrupted table goes.")] = None,
    kind: Annotated[str, typer.Option(help="The fault: see --list.")] = "mix",
    ratio: Annotated[float, typer.Option(help="Share of the values to corrupt.")] = 0.3,
    severity: Annotated[float, typer.Option(help="Factor on the size of every fault.")] = 1.0,
    channels: Annotated[
        str, typer.Option(help="Columns to corrupt, separated by commas. Default: all numbers.")
    ] = "",
    time: Annotated[
        str | None, typer.Option(help="The column of times, if they are numbers.")
    ] = None,
    id: Annotated[str | None, typer.Option(help="The column that tells series apart.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of positions and sizes.", min=0)] = 0,
    listing: Annotated[bool, typer.Option("--list", help="Show the faults.")] = False,
    as_json: AsJson = False,
) -> None:
    """Corrupt a table on purpose, and write beside it which values were corrupted and how.

    Example: sacm corrupt my.csv --kind stuck --ratio 0.3 --out bad.csv
    """
    from sacm.cli.output import show_json
    from sacm.files import write_atomically
    from sacm_lab.robust.faults.fault import corrupt_series, series_kinds

    if listing:
        _show_faults(as_json)
        return
    if data is None or out is None:
        raise ArgumentError("name a file and where its corrupted copy goes: --out bad.csv.")
    truth_file = out.with_name(f"{out.stem}.truth.csv")
    _check_paths(data, out, truth_file)
    table = _read(data)
    columns = _channels(table, channels, (time, id))
    series = [np.arange(len(table))]
    if id is not None:
        groups = table.groupby(id, sort=False).indices.values()
        series = [np.asarray(rows) for rows in groups]
    truth = table.copy()
    truth[columns] = ""
    truth = truth.astype(dict.fromkeys(columns, object))
    names = np.array(["", *series_kinds()[1:]], dtype=object)
    share = 0.0
    for number, rows in enumerate(series):
        values = table[columns].to_numpy(dtype=np.float64)[rows]
        result = corrupt_series(values, kind, ratio, severity=severity, seed=seed + number)
        table.loc[rows, columns] = result.values
        truth.loc[rows, columns] = names[result.kinds]
        share += float(result.corrupted.mean()) * len(rows) / len(table)
    write_atomically(out, lambda file: _write(table, file, out.suffix.lower()))
    write_atomically(truth_file, lambda file: truth.to_csv(file, index=False))
    if as_json:
        show_json({"out": str(out), "truth": str(truth_file), "share": share, "kind": kind})
        return
    typer.echo(f"{share:.1%} of the values are corrupted ({kind}, seed {seed}).")
    typer.echo(f"corrupted: {out}")
    typer.echo(f"truth: {truth_file}")


def _show_faults(as_json: bool) -> None:
    from sacm.cli.output import show_json, show_texts
    from sacm_lab.robust.faults import FAULTS

    rows = [(name, each.title) for name, each in FAULTS.items() if each.series or each.parts]
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


def _read(data: Path) -> pd.DataFrame:
    """The table; columns of numbers are float64."""
    import pandas as pd

    try:
        if data.suffix.lower() == ".npy":
            values = np.load(data, allow_pickle=False)
            table = pd.DataFrame(values.reshape(len(values), -1)).rename(columns=str)
        elif data.suffix.lower() == ".parquet":
            table = pd.read_parquet(data)
        else:
            separator = _SEPARATORS.get(data.suffix.lower(), ",")
            table = pd.read_csv(data, sep=separator, float_precision="round_trip")
    except Exception as error:  # NumPy, pandas and pyarrow raise different errors
        reason = str(error).partition("\n")[0].rstrip(".")
        raise DataError(f"{data} cannot be read: {reason}.") from error
    return table.reset_index(drop=True)


def _channels(table: pd.DataFrame, named: str, kept: tuple[str | None, ...]) -> list[str]:
    """The columns to corrupt, which become float64."""
    wanted = [name.strip() for name in named.split(",") if name.strip()]
    for name in (*wanted, *filter(None, kept)):
        if name not in table.columns:
            listed = ", ".join(map(str, table.columns))
            raise ArgumentError(f"there is no column {name!r}: the table has {listed}.")
    numeric = table.select_dtypes("number").columns
    columns = wanted or [str(name) for name in numeric if name not in kept]
    for name in columns:
        if name not in numeric:
            raise ArgumentError(f"the column {name!r} does not hold numbers.")
        table[name] = table[name].astype(np.float64)
    if not columns:
        raise ArgumentError("the table has no column of numbers to corrupt.")
    return columns


def _write(table: pd.DataFrame, file: Path, ending: str) -> None:
    """Write the table in the format of its ending."""
    if ending == ".npy":
        with file.open("wb") as stream:  # NumPy would add an ending to the name
            np.save(stream, table.to_numpy(dtype=np.float64))
    elif ending == ".parquet":
        table.to_parquet(file, index=False)
    else:
        table.to_csv(file, sep=_SEPARATORS[ending], index=False)
