"""`sacm predict`, `evaluate`, `backtest` and `export`: put a finished run to use."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from sacm.cli import options, output
from sacm.cli.output import note
from sacm.cli.runs import load_predictor, takes_run
from sacm.errors import ArgumentError

_TABLES, _FIGURES = (".csv",), (".png", ".svg", ".pdf")
_EXPORTS = {"onnx": ".onnx", "torch": ".pt2"}


@takes_run
def predict(
    loaded: Any,
    data: options.RunData = None,
    out: Annotated[Path | None, Option(help="A .csv file. Default: print.")] = None,
    coverage: Annotated[str | None, Option(help="Forecasts: intervals, such as 0.8,0.95.")] = None,
    horizon: Annotated[int | None, Option(help="Steps, also beyond the run's.", min=1)] = None,
    threshold: Annotated[str | None, Option(help="Alarms: a score, or quantile=0.99.")] = None,
    plot: Annotated[Path | None, Option(help="Draw to this .png, .svg or .pdf file.")] = None,
    max_repaired: Annotated[float, Option(help="Largest repaired share.", min=0, max=1)] = 0.5,
    as_json: options.AsJson = False,
) -> None:
    """Forecast what follows the data, classify cases, or score rows.

    The data are read as those that the run was trained on; options for reading change that.

    Example: sacm predict latest --data new.csv --coverage 0.8 --out next.csv --plot next.png
    """
    for path, what, kinds in ((out, "predictions", _TABLES), (plot, "figures", _FIGURES)):
        if path is not None and path.suffix not in kinds:
            raise ArgumentError(f"{path}: {what} are written to {', '.join(kinds)} files.")
    intervals = options.numbers(coverage, "--coverage", shares=True)
    _, predictor = loaded
    if threshold is not None:
        from sacm.inference.detect import choose_threshold

        predictor = choose_threshold(predictor, threshold)
        note(f"Threshold: {predictor.threshold:.6g} ({threshold}).")
    asked = {"intervals": intervals, "horizon": horizon, "max_repaired": max_repaired}
    answer = predictor.tabulate(data or predictor.settings.data, **asked)
    output.show_notes(answer.notes, answer.understood)
    if answer.values is not None:
        alarms, threshold = answer.frame["alarm"].sum(), predictor.threshold
        note(f"{alarms:,} of {len(answer.frame):,} rows are alarms: score {threshold:.4g} or more.")
    if plot is not None:
        from sacm.inference.run_page import draw_answer

        figure, shown = draw_answer(predictor, answer)
        output.save_figure(figure, plot)
        note(f"Drawn in {plot}. {shown}".rstrip())
    if out is not None:
        output.write_frame(answer.frame, out)
        note(f"{len(answer.frame):,} rows written to {out}.")
    elif as_json:
        typer.echo(answer.frame.to_json(orient="records", date_format="iso", indent=1))
    else:
        typer.echo(answer.frame.to_csv(index=False, float_format=output.DIGITS), nl=False)


@takes_run
def evaluate(
    loaded: Any,
    data: Annotated[str | None, Option(help="Test on all of this file, not the run's own.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Evaluate the saved network on the test part of its data again, or on other data.

    Example: sacm evaluate latest --data new.csv
    """
    from sacm.data import fingerprint
    from sacm.files import read_json

    finished, predictor = loaded
    source: Any = finished.load_data() if data is None else data
    result = predictor.evaluate(source)
    record = {"run": str(finished.folder), "data": data, **result.record()}
    if data is None:
        trained_on = read_json(finished.folder / "environment.json").get("fingerprint")
        record["same_data"] = trained_on == fingerprint(source)
        if not record["same_data"]:
            note(f"Note: {finished.settings.data} has changed since the run was trained.")
    if as_json:
        output.show_json(record)
    else:
        output.show_results(finished.settings.task, record)


@takes_run
def backtest(
    loaded: Any,
    data: options.RunData = None,
    origins: Annotated[int, Option(help="Forecasts to make, at most.", min=1)] = 10,
    step: Annotated[int | None, Option(help="Rows between forecasts; the horizon.", min=1)] = None,
    out: Annotated[Path | None, Option(help="Write all forecasts and truths as CSV.")] = None,
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
        raise ArgumentError("the run's data have no test part: name new rows with --data.")
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
        return
    words = [name for name in ("row", "from") if name in table]
    errors = [name for name in ("mae", "naive", "seasonal_naive") if name in table]
    means = table[errors].mean()
    rows = list(table[words].astype(str).join(table[errors]).itertuples(index=False, name=None))
    rows.append(("mean", *[""] * (len(words) - 1), *means))
    headings = ["first row", *words[1:], *(name.replace("_", " ") for name in errors)]
    title = f"mean absolute error of each forecast{past.attrs['unit']}"
    output.show_table(headings, rows, title=title, words=len(words))
    best = str(means[errors[1:]].idxmin())
    season = f"season of {past.attrs['season']} steps"
    what = f"the last {'value' if best == 'naive' else season}"
    if means["mae"] >= means[best]:
        note(f"Note: this model loses to repeating {what}.")
    else:
        note(f"Better than repeating {what}, by {1 - means['mae'] / means[best]:.0%}.")


def export(
    run: options.RunName,
    to: Annotated[str, Option(help="onnx or torch (torch.export).")] = "onnx",
    out: Annotated[Path | None, Option(help="The file. Default: model.onnx in the run.")] = None,
) -> None:
    """Write the network as one file that takes and gives raw units, and check its answers.

    Scaling, repair and un-scaling are inside. A JSON file beside it describes inputs and outputs
    and holds an example.

    Example: sacm export latest --to onnx --out model.onnx
    """
    from sacm.inference.export import export as write_model

    if to not in _EXPORTS:
        raise ArgumentError(f"--to {to!r}: expected onnx or torch.")
    finished, predictor = load_predictor(run)
    path = out or finished.folder / f"model{_EXPORTS[to]}"
    if path.suffix != _EXPORTS[to]:
        raise ArgumentError(f"{path}: a file for {to} ends in {_EXPORTS[to]}.")
    described = write_model(predictor, path, to)
    note(f"Answers checked against those of `sacm predict`; described in {described}.")
    typer.echo(f"model: {path}")
