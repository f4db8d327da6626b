"""`sacm predict`: put a finished run to use."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sacm.cli.options import AsJson, KeepFile, RulesFile, takes_reading
from sacm.cli.output import DIGITS, note, show_notes
from sacm.errors import ArgumentError

_FORMULA = re.compile(r"[=@]|[+-](?![\d.])")  # numbers are only numbers

if TYPE_CHECKING:
    import pandas as pd

    from sacm.inference import Predictor
    from sacm.inference.predictor import Answer


@takes_reading(without=("target", "columns", "split", "scaling"))
def predict(
    run: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="A finished run: its folder, or latest."),
    ],
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
    coverage: Annotated[
        str | None,
        typer.Option(
            metavar="SHARES",
            help="Forecasts: intervals that enclose these shares, such as 0.8,0.95.",
        ),
    ] = None,
    quantiles: Annotated[
        str | None,
        typer.Option(metavar="LEVELS", help="Forecasts: these quantiles, such as 0.1,0.5,0.9."),
    ] = None,
    horizon: Annotated[
        int | None,
        typer.Option(
            help="Forecasts: steps; beyond those trained for, forecast from forecasts.", min=1
        ),
    ] = None,
    max_repaired: Annotated[
        float,
        typer.Option(
            help="Forecasts: share of the last rows that may be repaired or missing.", min=0, max=1
        ),
    ] = 0.5,
    threshold: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="Alarms: a number, quantile=0.99, alarms-a-day=2 or labels=FILE. Default: that "
            "of the run.",
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw forecasts or alarms to this .png, .svg or .pdf file.")
    ] = None,
    repair: Annotated[
        bool, typer.Option("--repair/--no-repair", help="Whether a guard repairs what is broken.")
    ] = True,
    rules: RulesFile = None,
    keep: KeepFile = None,
    as_json: AsJson = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Forecast what follows the data, classify cases, or score rows.

    The data are read as those that the run was trained on; options for reading change that.

    Example: sacm predict latest --data new.csv --coverage 0.8 --out next.csv --plot next.png
    """
    from sacm.cli.output import show_understood
    from sacm.cli.runs import as_user_error, load_run
    from sacm.inference import Predictor
    from sacm.strategies.guard import obeying
    from sacm.strategies.registry import without

    if out is not None and out.suffix not in (".csv", ".parquet"):
        raise ArgumentError(f"{out}: predictions are written to .csv or .parquet files.")
    check_figure(plot)
    options: dict[str, Any] = {
        "intervals": shares(coverage, "--coverage"),
        "quantiles": shares(quantiles, "--quantiles"),
        "horizon": horizon,
        "future_data": future_data,
        "max_repaired": max_repaired,
    }
    finished = load_run(run)
    with as_user_error():
        predictor = obeying(Predictor.load(finished), rules, keep)
        if not repair:
            predictor = replace(predictor, strategy=without(predictor.strategy, "guard"))
        settings = predictor.settings.model_copy(update=reading)
        predictor = replace(predictor, settings=settings)
        source = data or settings.data
        if threshold is not None:
            predictor = with_threshold(predictor, threshold, source)
        answer = predictor.tabulate(source, **options)
    frame = answer.frame
    show_understood(answer.understood)
    show_notes(answer.notes)
    if plot is not None:
        draw_predictions(predictor, answer, plot)
        note(f"Drawn in {plot}.")
    if out is not None:
        write(frame, out)
        note(f"{len(frame):,} rows written to {out}.")
    elif as_json:
        typer.echo(frame.to_json(orient="records", date_format="iso", indent=1))
    else:
        typer.echo(frame.to_csv(index=False, float_format=DIGITS), nl=False)


def shares(text: str | None, option: str) -> tuple[float, ...]:
    """`0.8,0.95` as numbers between 0 and 1."""
    try:
        found = tuple(float(part) for part in (text or "").split(",") if part.strip())
    except ValueError:
        found = (0.0,)
    if not all(0 < share < 1 for share in found):
        raise ArgumentError(
            f"{option} {text!r}: expected numbers between 0 and 1 separated by commas, such as "
            "0.8,0.95."
        )
    return found


def with_threshold(predictor: Predictor, way: str, source: str) -> Predictor:
    """Return the detector with another threshold, and print the threshold."""
    from sacm.inference.detect import choose_threshold

    chosen = choose_threshold(predictor, way, source)
    note(f"Threshold: {chosen.value:.6g}, {chosen.reason}.")
    return replace(predictor, threshold=chosen.value)


def check_figure(path: Path | None) -> None:
    """Refuse a file that is no figure."""
    kinds = (".png", ".svg", ".pdf")
    if path is not None and path.suffix not in kinds:
        raise ArgumentError(f"{path}: figures are written to {', '.join(kinds)} files.")


def draw_predictions(predictor: Predictor, answer: Answer, path: Path) -> None:
    """Predictions as an image."""
    from sacm.cli.runs import write_file
    from sacm.inference.run_page import draw_answer

    figure, said = draw_answer(predictor, answer)
    if said:
        note(said)
    write_file(path, lambda file: figure.savefig(file, format=path.suffix[1:], dpi=150))


def write(frame: pd.DataFrame, path: Path) -> None:
    """A table as the kind of file that its name asks for."""
    from sacm.cli.runs import write_file

    if path.suffix == ".parquet":
        write_file(path, lambda file: frame.to_parquet(file, index=False))
    else:
        note_formulas(frame, path)
        write_file(path, lambda file: frame.to_csv(file, index=False, float_format=DIGITS))


def note_formulas(frame: pd.DataFrame, path: Path) -> None:
    """Say which names a spreadsheet would run as formulas.

    They are the user's own names and stay as they are: forecasts are joined to data by them.
    """
    texts = frame.select_dtypes(include=["object", "string"])
    values = {str(value) for name in texts for value in texts[name].unique()}
    found = sorted(name for name in {*map(str, frame.columns), *values} if _FORMULA.match(name))
    if found:
        note(
            f"Note: {path}: a spreadsheet may take {found[0]!r} for a formula, for it begins with "
            f"{found[0][0]!r}: open the file as text if the names are not your own."
        )
