"""`sacm labels`: which labels of cases are wrong, and what they should be."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from sacm.cli.options import AsJson, takes_reading
from sacm.errors import DataError
from sacm.settings import READING

if TYPE_CHECKING:
    import pandas as pd

_LACKS = tuple(name for name in READING if name not in ("id", "label", "decimal"))


@takes_reading(without=_LACKS)
def labels(
    data: Annotated[
        str,
        typer.Argument(metavar="FILE", help="Cases: .npz, .ts, a table, or a name of a data set."),
    ],
    out: Annotated[Path | None, typer.Option(help="Write an HTML report to this file.")] = None,
    flags: Annotated[
        Path | None, typer.Option(help="Write the suspicious cases to this CSV file.")
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(help="Cases whose label is right: a --flags file, its column keep filled."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of random features and folds.")] = 0,
    as_json: AsJson = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Find labels that are probably wrong, in training and test cases alike.

    Example: sacm labels cases.npz --out labels.html --flags labels.csv
    """
    judge_labels(data, out=out, flags=flags, keep=keep, seed=seed, as_json=as_json, reading=reading)


def holds_cases(data: str) -> bool:
    """Whether a file holds labelled cases: a `.ts` file, or an archive with `X_train`."""
    path = Path(data)
    if path.suffix != ".npz" or not path.is_file():
        return path.suffix == ".ts"
    try:
        with np.load(path, allow_pickle=False) as archive:
            return "X_train" in archive.files
    except (OSError, ValueError):  # said in a sentence by who reads it
        return False


def judge_labels(
    data: str,
    *,
    out: Path | None,
    flags: Path | None,
    keep: Path | None,
    as_json: bool,
    reading: dict[str, Any],
    seed: int = 0,
) -> None:
    """Judge the labels of a file of cases, and print or write what is found."""
    from sacm.cli.output import show_json
    from sacm.cli.runs import as_user_error, check_output, write_file
    from sacm.data.load import resolve
    from sacm.quality.labels import find_wrong_labels

    for path in (out, flags):
        check_output(path)
    with as_user_error():
        read: Any = resolve(data, task="classification", reading=reading)
        parts = [(read.X_train, read.y_train), (read.X_test, read.y_test)]
        X, y = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        groups = None
        if read.subjects_train is not None and read.subjects_test is not None:
            groups = np.concatenate([read.subjects_train, read.subjects_test])
        kept = () if keep is None else _kept_cases(keep, len(y))
        found = find_wrong_labels(X, y, groups=groups, keep=kept, seed=seed)
        if out is not None:
            found.report(out)
    table = found.to_frame().assign(keep="")
    if flags is not None:
        write_file(flags, lambda file: table.to_csv(file, index=False))
    if as_json:
        record = {"cases": len(y), "trust": found.trust, "reason": found.reason}
        record |= {"noise_rate": found.noise_rate, "noise_interval": list(found.noise_interval)}
        show_json({**record, "suspicious": table.drop(columns="keep").to_dict("records")})
        return
    typer.echo(found.summary())
    for name, written in (("report", out), ("flags", flags)):
        if written is not None:
            typer.echo(f"{name}: {written}")


def _kept_cases(path: Path, count: int) -> list[int]:
    """Cases of a table whose column `keep` says something."""
    import pandas as pd

    try:
        table: pd.DataFrame = pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    if not {"case", "keep"} <= set(table.columns):
        raise DataError(f"{path} needs the columns case and keep, as --flags writes them.")
    return [int(case) for case in table.loc[table["keep"].notna(), "case"] if case < count]
