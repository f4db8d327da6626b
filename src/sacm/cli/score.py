"""`sacm score`: rank the windows of a series by unreliability."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sacm.cli import options, output
from sacm.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

    from sacm.data import ForecastingData

_FEW = 3  # windows that are shown at each end


@options.takes_reading(without=("target", "split", "scaling"))
def score(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A CSV, Parquet or NumPy file.")],
    window: Annotated[int, typer.Option(help="Rows in a window.")] = 96,
    stride: Annotated[
        int | None, typer.Option(help="Rows between two windows. Default: side by side.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write every window to this CSV file.")] = None,
    as_json: options.AsJson = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Rank the windows of a series by unreliability, without training anything.

    Every channel is z-scored over the file; a window's score is what the method's spectral filter
    takes away from it. Higher is less reliable.

    Example: sacm score my.csv --window 96 --out windows.csv
    """
    from sacm.data.forecasting import ALL_ROWS
    from sacm.data.load import names_file, resolve
    from sacm.data.scaling import fill_data

    step = window if stride is None else stride
    everything = {**reading, "split": ALL_ROWS} if names_file(file) else reading
    data: Any = fill_data(resolve(file, task="forecasting", reading=everything))[0]
    output.show_reading(data)
    ranked = rank_windows(data, window=window, stride=step)
    if out is not None:
        output.write_frame(ranked, out)
        output.note(f"{len(ranked):,} windows written to {out}.")
    if as_json:
        records = json.loads(ranked.to_json(orient="records", date_format="iso"))
        output.show_json({"file": file, "window": window, "stride": step, "windows": records})
        return
    rows: list[tuple[Any, ...]] = list(ranked.itertuples(index=False, name=None))
    if len(rows) > 2 * _FEW:
        rows = [*rows[:_FEW], ("…",), *rows[-_FEW:]]
    title = f"{len(ranked):,} windows of {file}, least reliable first"
    output.show_table(list(ranked.columns), rows, title=title)


def rank_windows(data: ForecastingData, *, window: int, stride: int) -> pd.DataFrame:
    """One row a window, the least reliable first; rows are counted from 1 in each series."""
    import numpy as np
    import pandas as pd

    from sacm import score_windows
    from sacm.data import ChannelScaler

    values = ChannelScaler.fit([data.values]).transform(data.values)
    series = data.last_rows(len(values))
    if len(series) > 1:
        series = {name: rows for name, rows in series.items() if len(rows) >= window}
    if not series:
        raise DataError(f"No series of {data.name} has the {window} rows of a window.")
    parts = []
    for name, rows in series.items():
        scores = score_windows(values[rows], window, stride)
        first = np.arange(len(scores)) * stride
        part: dict[str, Any] = {"series": name} if len(series) > 1 else {}
        part |= {"first_row": first + 1, "last_row": first + window}
        if data.timestamps is not None:
            times = data.timestamps[rows]
            write = pd.Series if data.form is None else data.form.write_times
            part |= {"from": write(times[first]), "to": write(times[first + window - 1])}
        parts.append(pd.DataFrame({**part, "score": scores.astype(np.float64)}))
    table = pd.concat(parts).sort_values("score", ascending=False, kind="stable")
    table.insert(0, "rank", range(1, len(table) + 1))
    return table.reset_index(drop=True)
