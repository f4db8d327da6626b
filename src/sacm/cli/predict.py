"""`sacm predict`: put a finished run to use."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from sacm.cli import options, output
from sacm.cli.output import note
from sacm.errors import ArgumentError


@options.takes_run
def predict(
    loaded: Any,
    data: options.RunData = None,
    out: Annotated[
        Path | None, typer.Option(help="A .csv or .parquet file. Default: print CSV.")
    ] = None,
    coverage: Annotated[
        str | None, typer.Option(help="Forecasts: intervals of these shares, such as 0.8,0.95.")
    ] = None,
    horizon: Annotated[
        int | None,
        typer.Option(help="Steps to forecast; beyond those of the run, from forecasts.", min=1),
    ] = None,
    threshold: Annotated[
        str | None,
        typer.Option(help="Alarms: a score, or quantile=0.99 of the validation scores."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw forecasts or alarms to this .png, .svg or .pdf file.")
    ] = None,
    quantiles: Annotated[
        str | None, typer.Option(help="Forecasts: these quantiles, such as 0.1,0.5,0.9.")
    ] = None,
    max_repaired: Annotated[
        float,
        typer.Option(help="Forecasts: largest share of repaired or missing inputs.", min=0, max=1),
    ] = 0.5,
    repair: Annotated[
        bool, typer.Option("--repair/--no-repair", help="Whether the guard repairs broken inputs.")
    ] = True,
    as_json: options.AsJson = False,
) -> None:
    """Forecast what follows the data, classify cases, or score rows.

    The data are read as those that the run was trained on; options for reading change that.

    Example: sacm predict latest --data new.csv --coverage 0.8 --out next.csv --plot next.png
    """
    if out is not None and out.suffix not in (".csv", ".parquet"):
        raise ArgumentError(f"{out}: predictions are written to .csv or .parquet files.")
    output.check_figure(plot)
    asked: dict[str, Any] = {
        "intervals": options.numbers(coverage, "--coverage", shares=True),
        "quantiles": options.numbers(quantiles, "--quantiles", shares=True),
        "horizon": horizon,
        "max_repaired": max_repaired,
    }
    _, predictor = loaded
    if not repair:
        from sacm.strategies.registry import without

        predictor = replace(predictor, strategy=without(predictor.strategy, "guard"))
    source = data or predictor.settings.data
    if threshold is not None:
        from sacm.inference.detect import choose_threshold

        predictor = choose_threshold(predictor, threshold)
        note(f"Threshold: {predictor.threshold:.6g} ({threshold}).")
    answer = predictor.tabulate(source, **asked)
    output.show_understood(answer.understood)
    output.show_notes(answer.notes)
    frame = answer.frame
    if plot is not None:
        from sacm.inference.run_page import draw_answer

        figure, shown = draw_answer(predictor, answer)
        output.save_figure(figure, plot)
        note(f"Drawn in {plot}. {shown}".rstrip())
    if out is not None:
        output.write_frame(frame, out)
        note(f"{len(frame):,} rows written to {out}.")
    elif as_json:
        typer.echo(frame.to_json(orient="records", date_format="iso", indent=1))
    else:
        typer.echo(frame.to_csv(index=False, float_format=output.DIGITS), nl=False)
