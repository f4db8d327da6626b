"""`sacm backtest`: forecasts as they would have been made in the past."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sacm.cli.options import AsJson, KeepFile, RulesFile, Runs, takes_reading
from sacm.errors import ArgumentError

if TYPE_CHECKING:
    import pandas as pd


@takes_reading(without=("target", "columns", "split", "scaling"))
def backtest(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="A finished run: its folder, or latest.")
    ],
    data: Annotated[
        str | None, typer.Option(help="A file or data set. Default: what the run was trained on.")
    ] = None,
    origins: Annotated[int, typer.Option(help="Forecasts to make, at most.", min=1)] = 10,
    step: Annotated[
        int | None, typer.Option(help="Rows between two forecasts. Default: the horizon.", min=1)
    ] = None,
    refit: Annotated[int, typer.Option(help="Retrain every N forecasts; 0 = never.", min=0)] = 0,
    runs: Runs = Path("runs/backtests"),
    out: Annotated[
        Path | None, typer.Option(help="Write every forecast and its truth to this .csv file.")
    ] = None,
    rules: RulesFile = None,
    keep: KeepFile = None,
    as_json: AsJson = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Forecast from origins in the past, one after the other, beside naive forecasts.

    Without refits the origins lie in the test part of the run's data. A refit sees the rows before
    its origin alone; refits are runs of their own and are not repeated.

    Example: sacm backtest latest --origins 12 --refit 4 --out forecasts.csv
    """
    from sacm.cli.output import note
    from sacm.cli.predict import write
    from sacm.cli.runs import as_user_error, load_run
    from sacm.inference import Predictor
    from sacm.inference.backtest import backtest as look_back
    from sacm.inference.history import read_history
    from sacm.strategies.guard import obeying

    finished = load_run(run).read_as(reading)
    with as_user_error():
        predictor = obeying(Predictor.load(finished), rules, keep)
        series: Any = finished.load_data() if data is None else read_history(predictor, data).data
        known = finished.settings.task == "forecasting" and not len(series.splits.test)
        if data is None and not refit and known:
            raise ArgumentError(
                "the run's data have no test part, and the network knows the other rows: name new "
                "ones with --data, or train anew with --refit."
            )
        found = look_back(
            predictor,
            series,
            origins=origins,
            step=step,
            refit=refit,
            folder=runs,
            hardware=quiet_hardware() if refit else None,
            on_refit=lambda number: note(f"Training for origin {number + 1} …"),
        )
    table = found.table()
    if origins is not None and len(found.origins) < origins:
        note(f"Note: there is room for {len(found.origins)} origins, fewer than {origins}.")
    if share := found.unmeasured:
        note(f"{share:.1%} of the targets were not measured and do not count.")
    if out is not None:
        write(found.long(), out)
        note(f"{len(found.forecasts):,} forecasts written to {out}.")
    if as_json:
        typer.echo(table.to_json(orient="records", date_format="iso", indent=1))
    else:
        show_backtest(table, season=found.season)


def quiet_hardware() -> Any:
    """One processor, without progress bars."""
    from sacm.training import Hardware

    return Hardware(show_progress=False)


def show_backtest(table: pd.DataFrame, *, season: int) -> None:
    """One row an origin, their means, and who is better."""
    from sacm.cli.output import note, show_table

    errors = [name for name in ("mae", "naive", "seasonal_naive") if name in table]
    times = ["from"] if "from" in table else []
    rows: list[list[Any]] = [
        [str(row["row"]), *(str(row[name]) for name in times), *(row[name] for name in errors)]
        for row in table.to_dict("records")
    ]
    means = {name: float(table[name].to_numpy().mean()) for name in errors}
    rows.append(["mean", *("" for _ in times), *means.values()])
    headings = ["first row", *times, *(name.replace("_", " ") for name in errors)]
    title = "mean absolute error of each forecast, z-scored"
    show_table(headings, rows, title=title, words=1 + len(times))
    best = min(errors[1:], key=means.__getitem__)
    if means["mae"] >= means[best]:
        what = "the last value" if best == "naive" else f"the last season of {season} steps"
        note(f"Note: this model loses to repeating {what}.")
