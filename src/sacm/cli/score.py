"""`sacm score`: rank the windows of a series by unreliability."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sacm.cli.options import AsJson, takes_reading
from sacm.errors import ArgumentError, DataError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from sacm.data import ForecastingData

_FEW = 3  # windows that are shown at each end


@takes_reading(without=("target", "split", "scaling"))
def score(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A CSV, Parquet or NumPy file.")],
    window: Annotated[int, typer.Option(help="Rows in a window.")] = 96,
    stride: Annotated[
        int | None, typer.Option(help="Rows between two windows. Default: side by side.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write every window to this CSV file.")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the worst and the best windows to this image.")
    ] = None,
    as_json: AsJson = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Rank the windows of a series by unreliability, without training anything.

    Every channel is z-scored over the file; a window's score is what the method's spectral filter
    takes away from it. Higher is less reliable.

    Example: sacm score my.csv --window 96 --plot windows.png
    """
    from sacm.cli import output
    from sacm.cli.output import note

    output.check_figure(plot)
    step = window if stride is None else stride
    data = read_values(file, reading)
    output.show_reading(data)
    scored = score_series(data, window=window, stride=step)
    ranked = ranking(scored, data, window=window, stride=step)
    if out is not None:
        output.write(ranked, out)
        note(f"{len(ranked):,} windows written to {out}.")
    if plot is not None:
        from sacm.reports.figures import score_figure

        if len(scored) > 1:
            raise ArgumentError(f"--plot draws one series, but {data.name} holds {len(scored)}.")
        options: dict[str, Any] = {"columns": data.columns, "times": data.timestamps}
        figure = score_figure(*next(iter(scored.values())), window=window, stride=step, **options)
        output.save_figure(figure, plot)
        note(f"The worst and the best are drawn in {plot}.")
    if as_json:
        records = json.loads(ranked.to_json(orient="records", date_format="iso"))
        output.show_json({"file": file, "window": window, "stride": step, "windows": records})
        return
    rows: list[tuple[Any, ...]] = list(ranked.itertuples(index=False, name=None))
    if len(rows) > 2 * _FEW:
        rows = [*rows[:_FEW], ("…",), *rows[-_FEW:]]
    title = f"{len(ranked):,} windows of {file}, least reliable first"
    output.show_table(list(ranked.columns), rows, title=title)


def read_values(file: str, reading: dict[str, Any]) -> ForecastingData:
    """The series in a file, or in a data set of the catalogue, without gaps."""
    from sacm.data.forecasting import ALL_ROWS
    from sacm.data.load import names_file, resolve
    from sacm.data.scaling import fill_data

    options = {**reading, "split": ALL_ROWS} if names_file(file) else reading
    data: Any = resolve(file, task="forecasting", reading=options)
    filled: ForecastingData = fill_data(data)[0]
    return filled


def score_series(
    data: ForecastingData, *, window: int, stride: int
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Z-scored values `[T, C]` and scores `[N]` of every series that holds a window."""
    from sacm import score_windows
    from sacm.data import ChannelScaler

    scaler = ChannelScaler.fit([data.values])
    scored = {}
    for name, rows in data.last_rows(len(data.values)).items():
        if len(data.segments) == 1 or len(rows) >= window:
            values = scaler.transform(data.values[rows])
            scored[name] = values, score_windows(values, window, stride)
    if not scored:
        raise DataError(f"No series of {data.name} has the {window} rows of a window.")
    return scored


def ranking(
    scored: dict[str, tuple[np.ndarray, np.ndarray]],
    data: ForecastingData,
    *,
    window: int,
    stride: int,
) -> pd.DataFrame:
    """One row a window, the least reliable first; rows are counted from 1."""
    import numpy as np
    import pandas as pd

    positions = data.last_rows(len(data.values))
    parts = []
    for name, (_, scores) in scored.items():
        first = np.arange(len(scores)) * stride
        part: dict[str, Any] = {"series": name} if len(scored) > 1 else {}
        part |= {"first_row": first + 1, "last_row": first + window}
        if data.timestamps is not None:
            times = data.timestamps[positions[name]]
            write = pd.Series if data.form is None else data.form.write_times
            part |= {"from": write(times[first]), "to": write(times[first + window - 1])}
        parts.append(pd.DataFrame({**part, "score": scores.astype(np.float64)}))
    table = pd.concat(parts).sort_values("score", ascending=False, kind="stable")
    table.insert(0, "rank", range(1, len(table) + 1))
    return table.reset_index(drop=True)
