"""`sacm predict`: put a finished run to use."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sacm.cli.options import AsJson
from sacm.cli.output import DIGITS, note, show_notes
from sacm.errors import ArgumentError, DataError, SACMError

if TYPE_CHECKING:
    import pandas as pd

    from sacm.estimators.reading import Reading
    from sacm.training import Run


def predict(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished run.")],
    data: Annotated[
        str | None, typer.Option(help="A file or data set. Default: what the run was trained on.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="A .csv or .parquet file. Default: print CSV.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Forecast what follows the data, classify cases, or score rows.

    Example: sacm predict runs/my_PatchTST_sacm_seed42_0123456789 --data new.csv --out next.csv
    """
    from sacm.cli.runs import as_user_error, open_run

    if out is not None and out.suffix not in (".csv", ".parquet"):
        raise ArgumentError(f"{out}: predictions are written to .csv or .parquet files.")
    opened = open_run(run)
    predictors = {"forecasting": forecasts, "classification": classes, "anomaly": alarms}
    with as_user_error():
        frame = predictors[opened.settings.task](opened, data or opened.settings.data)
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


def forecasts(run: Run, source: str) -> pd.DataFrame:
    """The steps after the end of every series."""
    from sacm.backbones.registry import takes_calendar
    from sacm.estimators.ahead import forecast_ahead

    reading = history(run, source)
    show_notes(reading.data.notes)
    if reading.data.channels != run.scaler.channels:
        raise DataError(
            f"{source} has {reading.data.channels} columns of values but the run was trained on "
            f"{run.scaler.channels}."
        )
    record, stamped = run.data_record, reading.data.timestamps is not None
    trained_stamped = stamped if record is None else record.stamped
    calendar = trained_stamped and takes_calendar(run.settings.backbone)
    if calendar and not stamped:
        raise DataError(f"{source} has no timestamps, but the run was trained with a calendar.")
    built_for = reading.data if calendar else replace(reading.data, timestamps=None)
    forecast = forecast_ahead(
        run.load_model(built_for),
        reading.data,
        settings=run.settings,
        strategy=run.strategy,
        scaler=run.scaler,
        calendar=calendar,
    )
    form = replace(reading.form, kind="pandas", flat=False, indexed=False)
    frame: pd.DataFrame = form.give(
        forecast.values,
        series=forecast.series,
        columns=reading.data.columns,
        times=forecast.times,
        rows=len(reading.data.values),
    )
    if form.time is None and not form.long:
        frame.insert(0, "row", frame.index + 1)
    return frame


def history(run: Run, source: str) -> Reading:
    """What to forecast from, with the columns of the training data where those are known."""
    from sacm.data import load
    from sacm.data.benchmarks.load import names_file
    from sacm.estimators.reading import read, read_history, without_rows

    def found(name: str) -> Any:
        return Path(name) if names_file(name) else load(name)

    if run.data_record is not None:
        return read_history(found(source), without_rows(run.data_record, run.scaler.channels))
    if source == run.settings.data:
        return read(found(source))
    try:
        trained = read(found(run.settings.data))
    except SACMError:  # trained on another machine
        return read(found(source))
    return read_history(found(source), trained)


def classes(run: Run, source: str) -> pd.DataFrame:
    """The class of every case, with the probability of each."""
    import pandas as pd

    from sacm.data.benchmarks.load import names_file, resolve
    from sacm.data.own.cases import read_case_file
    from sacm.estimators.cases import case_windows, class_probabilities, without_cases

    length = run.settings.input_len
    trained: Any
    if run.data_record is None:
        trained = run.load_data()
    else:
        known = run.data_record.classes
        trained = without_cases(known, channels=run.scaler.channels, length=length)
    if source == run.settings.data or not names_file(source):
        data: Any = resolve(source, task="classification")
        cases = data.X_test if len(data.X_test) else data.X_train
    else:
        arrays = read_case_file(Path(source), None)
        whole = source.endswith(".ts") or not len(arrays["X_test"])
        cases = arrays["X_train" if whole else "X_test"]
    windows = case_windows(cases, scaler=run.scaler, length=length)
    probabilities = class_probabilities(run.load_model(trained), windows, run.strategy)
    frame = pd.DataFrame(probabilities, columns=[f"p_{name}" for name in trained.classes])
    best = [trained.classes[place] for place in probabilities.argmax(axis=1)]
    frame.insert(0, "case", range(1, len(frame) + 1))
    frame.insert(1, "class", best)
    return frame


def alarms(run: Run, source: str) -> pd.DataFrame:
    """A score for every row, and whether it reaches the threshold."""
    import pandas as pd

    from sacm.data.benchmarks.load import names_file, resolve
    from sacm.estimators.rows import read_rows, row_scores, without_rows
    from sacm.tasks.anomaly import flag, step_scores
    from sacm.training.data_record import check_columns

    columns = trained_columns(run)
    if names_file(source):
        rows = read_rows(Path(source), columns=columns, missing="interpolate")
        show_notes(rows.notes)
        scores = row_scores(
            run.load_model(without_rows(run.scaler.channels)),
            rows,
            settings=run.settings,
            strategy=run.strategy,
            scaler=run.scaler,
        )
    else:
        data: Any = resolve(source, task="anomaly")
        if columns is not None:
            check_columns(source, data.columns, columns)
        windows = run.task.windows(run.settings, data, scaler=run.scaler)
        scores = step_scores(run.load_model(data), windows.test, run.settings, run.strategy)
    threshold = run.metrics["report"]["threshold"]
    return pd.DataFrame(
        {
            "row": range(1, len(scores) + 1),
            "score": scores,
            "threshold": threshold,
            "alarm": flag(scores, threshold),
        }
    )


def trained_columns(run: Run) -> tuple[str, ...] | None:
    """The columns of the training data; None if they have no names or are not known."""
    from sacm.data.benchmarks.load import names_file
    from sacm.estimators.rows import read_rows

    if run.data_record is not None:
        return run.data_record.columns
    if not names_file(run.settings.data):
        return None
    try:
        return read_rows(Path(run.settings.data), missing="interpolate").columns
    except SACMError:  # trained on another machine
        return None
