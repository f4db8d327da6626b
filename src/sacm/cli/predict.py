"""`sacm predict`: put a finished run to use."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sacm.cli.options import AsJson
from sacm.cli.output import DIGITS, note, show_notes
from sacm.cli.settings_options import takes_reading
from sacm.errors import ArgumentError

if TYPE_CHECKING:
    import pandas as pd


@takes_reading(without=("target", "columns", "split"))
def predict(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished run.")],
    data: Annotated[
        str | None, typer.Option(help="A file or data set. Default: what the run was trained on.")
    ] = None,
    future_data: Annotated[
        Path | None,
        typer.Option(help="A table with known-future covariates of the steps to forecast."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="A .csv or .parquet file. Default: print CSV.")
    ] = None,
    repair: Annotated[
        bool, typer.Option("--repair/--no-repair", help="Whether a guard repairs what is broken.")
    ] = True,
    as_json: AsJson = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Forecast what follows the data, classify cases, or score rows.

    The data are read as those that the run was trained on; options for reading change that.

    Example: sacm predict runs/my_PatchTST_sacm_seed42_0123456789 --data new.csv --out next.csv
    """
    from sacm.cli.reading import show_understood
    from sacm.cli.runs import as_user_error, open_run
    from sacm.inference import Predictor

    if out is not None and out.suffix not in (".csv", ".parquet"):
        raise ArgumentError(f"{out}: predictions are written to .csv or .parquet files.")
    opened = open_run(run)
    with as_user_error():
        predictor = Predictor.open(opened)
        if not repair:
            predictor = replace(predictor, strategy=predictor.strategy.without_repair())
        settings = predictor.settings.model_copy(update=reading)
        predictor = replace(predictor, settings=settings)
        answer = predictor.tabulate(data or opened.settings.data, future_data=future_data)
    frame = answer.frame
    show_understood(answer.understood)
    show_notes(answer.notes)
    if out is not None:
        write(frame, out)
        note(f"{len(frame):,} rows written to {out}.")
    elif as_json:
        typer.echo(frame.to_json(orient="records", date_format="iso", indent=1))
    else:
        typer.echo(frame.to_csv(index=False, float_format=DIGITS), nl=False)


def write(frame: pd.DataFrame, path: Path) -> None:
    """A table as the kind of file that its name asks for."""
    from sacm.cli.runs import write_file

    if path.suffix == ".parquet":
        write_file(path, lambda file: frame.to_parquet(file, index=False))
    else:
        write_file(path, lambda file: frame.to_csv(file, index=False, float_format=DIGITS))
