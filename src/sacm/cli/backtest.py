"""`sacm backtest`: forecasts as they would have been made in the past."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sacm.cli import options, output
from sacm.cli.output import note
from sacm.errors import ArgumentError

if TYPE_CHECKING:
    import pandas as pd


@options.takes_run
def backtest(
    loaded: Any,
    data: options.RunData = None,
    origins: Annotated[int, typer.Option(help="Forecasts to make, at most.", min=1)] = 10,
    step: Annotated[
        int | None, typer.Option(help="Rows between two forecasts. Default: the horizon.", min=1)
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write every forecast and its truth to this .csv file.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Forecast from origins in the past, one after the other, beside naive forecasts.

    The origins lie in the test part of the run's data, or in the data that you name.

    Example: sacm backtest latest --origins 12 --out forecasts.csv
    """
    from sacm.inference.backtest import backtest as look_back
    from sacm.inference.backtest import errors_by_origin
    from sacm.inference.forecast import read_history

    finished, predictor = loaded
    series: Any = finished.load_data() if data is None else read_history(predictor, data)
    forecasts = finished.settings.task == "forecasting"
    if data is None and forecasts and not len(series.splits.test):
        raise ArgumentError(
            "the run's data have no test part, and the network knows the other rows: name new "
            "ones with --data."
        )
    past = look_back(predictor, series, origins=origins, step=step)
    table = errors_by_origin(past)
    if len(table) < origins:
        note(f"Note: there is room for {len(table)} origins, fewer than {origins}.")
    if share := past["truth"].isna().mean():
        note(f"{share:.1%} of the targets were not measured and do not count.")
    if out is not None:
        output.write_frame(past, out)
        note(f"{len(table):,} forecasts written to {out}.")
    if as_json:
        typer.echo(table.to_json(orient="records", date_format="iso", indent=1))
    else:
        show_backtest(table, season=past.attrs["season"])


def show_backtest(table: pd.DataFrame, *, season: int) -> None:
    """One row an origin, their means, and who is better."""
    words = [name for name in ("row", "from") if name in table]
    errors = [name for name in ("mae", "naive", "seasonal_naive") if name in table]
    means = table[errors].mean()
    rows = list(table[words].astype(str).join(table[errors]).itertuples(index=False, name=None))
    rows.append(("mean", *[""] * (len(words) - 1), *means))
    headings = ["first row", *words[1:], *(name.replace("_", " ") for name in errors)]
    title = "mean absolute error of each forecast, z-scored"
    output.show_table(headings, rows, title=title, words=len(words))
    best = str(means[errors[1:]].idxmin())
    if means["mae"] >= means[best]:
        what = "the last value" if best == "naive" else f"the last season of {season} steps"
        note(f"Note: this model loses to repeating {what}.")
