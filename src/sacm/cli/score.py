"""`sacm score`: which parts of a series to trust least."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from sacm.cli.options import AsJson, takes_reading
from sacm.cli.output import DIGITS, note, show_json, show_table
from sacm.errors import ArgumentError, DataError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from sacm.data import ForecastingData
    from sacm.data.form import Form


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
    count: Annotated[
        int | None,
        typer.Option(help="Windows at each end. Default: 3; all of them with --json.", min=1),
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
    import pandas as pd

    from sacm.cli.output import show_reading
    from sacm.cli.runs import check_output

    for path in (out, plot):
        check_output(path)
    step = window if stride is None else stride
    data, form = read_values(file, reading)
    show_reading(data)
    scored = score_series(data, window=window, stride=step)
    ranked = ranking(scored, data, form, window=window, stride=step)
    if out is not None:
        write_ranking(ranked, out)
        note(f"{len(ranked):,} windows written to {out}.")
    if plot is not None:
        draw_scores(scored, data, plot, window=window, stride=step, count=count or FEW)
        note(f"The worst and the best are drawn in {plot}.")
    if as_json:
        shown = ranked if count is None else pd.concat(pick_ends(ranked, count))
        show_json({"file": file, "window": window, "stride": step, "windows": records(shown)})
    else:
        show_ranking(ranked, file, count=count or FEW)


FEW = 3  # windows at each end


class ScoredSeries(NamedTuple):
    """One series and the scores of its windows."""

    name: str
    rows: range
    values: np.ndarray  # [T, C], z-scored
    scores: np.ndarray  # [N]


def read_values(file: str, reading: dict[str, Any]) -> tuple[ForecastingData, Form]:
    """The series in a file, or in a data set of the catalogue, and how it writes times."""
    from sacm.data.forecasting import ALL_ROWS, series_data
    from sacm.data.form import Form
    from sacm.data.gaps import fill_data
    from sacm.data.load import load, names_file, refuse_options
    from sacm.data.read import read_table
    from sacm.settings import ReadOptions

    if names_file(file):
        options = ReadOptions.of({**reading, "split": ALL_ROWS})
        table = read_table(file, options, name=None if file == "-" else file)
        return fill_data(series_data(table, options))[0], table.form
    refuse_options(file, reading)
    data: Any = load(file)
    if not hasattr(data, "values"):
        raise ArgumentError(f"{file} is not a data set for forecasting: it has no one series.")
    return data, Form("pandas")


def score_series(data: ForecastingData, *, window: int, stride: int) -> list[ScoredSeries]:
    """The scores of every series that holds a window."""
    from sacm import score_windows
    from sacm.data import ChannelScaler

    scaler = ChannelScaler.fit([data.values])
    found = []
    for name, rows in data.last_rows(len(data.values)).items():
        if len(data.segments) == 1 or len(rows) >= window:
            values = scaler.transform(data.values[rows])
            scores = score_windows(values, window, stride)
            found.append(ScoredSeries(name, range(len(rows)), values, scores))
    if not found:
        raise DataError(f"No series of {data.name} has the {window} rows of a window.")
    return found


def ranking(
    scored: list[ScoredSeries], data: ForecastingData, form: Form, *, window: int, stride: int
) -> pd.DataFrame:
    """One row a window, the least reliable first; rows are counted from 1."""
    import numpy as np
    import pandas as pd

    positions = data.last_rows(len(data.values))
    parts = []
    for one in scored:
        first = np.arange(len(one.scores)) * stride
        part: dict[str, Any] = {"series": one.name} if len(scored) > 1 else {}
        part |= {"first_row": first + 1, "last_row": first + window}
        if data.timestamps is not None:
            stamps = data.timestamps[positions[one.name]]
            ends = (stamps[first], stamps[first + window - 1])
            part |= dict(zip(("from", "to"), map(form.write_times, ends), strict=True))
        parts.append(pd.DataFrame({**part, "score": one.scores.astype(np.float64)}))
    table = pd.concat(parts).sort_values("score", ascending=False, kind="stable")
    table.insert(0, "rank", range(1, len(table) + 1))
    return table.reset_index(drop=True)


def write_ranking(ranked: pd.DataFrame, path: Path) -> None:
    """The ranking as CSV."""
    from sacm.cli.runs import write_file

    write_file(path, lambda file: ranked.to_csv(file, index=False, float_format=DIGITS))


def draw_scores(
    scored: list[ScoredSeries],
    data: ForecastingData,
    path: Path,
    *,
    window: int,
    stride: int,
    count: int,
) -> None:
    """The worst and best windows as an image."""
    from sacm.cli.runs import write_file
    from sacm.reports.figures import score_figure

    kinds = (".png", ".svg", ".pdf")
    if path.suffix not in kinds:
        raise ArgumentError(f"{path}: figures are written to {', '.join(kinds)} files.")
    if len(scored) > 1:
        raise ArgumentError(f"--plot draws one series, but {data.name} holds {len(scored)}.")
    figure = score_figure(
        scored[0].values,
        scored[0].scores,
        window=window,
        stride=stride,
        columns=data.columns,
        count=count,
        times=data.timestamps,
    )
    write_file(path, lambda file: figure.savefig(file, format=path.suffix[1:]))


def records(ranked: pd.DataFrame) -> list[dict[str, Any]]:
    """The ranking as plain values."""
    import json

    found: list[dict[str, Any]] = json.loads(ranked.to_json(orient="records", date_format="iso"))
    return found


def pick_ends(ranked: pd.DataFrame, count: int) -> list[pd.DataFrame]:
    """The first and the last windows of a ranking; all of them if there are few."""
    few = len(ranked) <= 2 * count
    return [ranked] if few else [ranked.head(count), ranked.tail(count)]


def show_ranking(ranked: pd.DataFrame, file: str, *, count: int) -> None:
    """The ends of the ranking."""
    rows: list[list[Any]] = []
    for end in pick_ends(ranked, count):
        if rows:
            rows.append(["…"])
        rows += [list(row.values()) for row in ranking_rows(end)]
    title = f"{len(ranked):,} windows of {file}, least reliable first"
    show_table(list(ranking_rows(ranked)[0]), rows, title=title)


def ranking_rows(ranked: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a ranking as they are printed."""
    found: list[dict[str, Any]] = []
    for row in ranked.to_dict("records"):
        cells: dict[str, Any] = {str(name): value for name, value in row.items()}
        rows = f"{cells.pop('first_row')}-{cells.pop('last_row')}"
        score = cells.pop("score")
        times = [name for name in ("from", "to") if name in cells]
        stamps: dict[str, Any] = {name: str(cells.pop(name)) for name in times}
        found.append({**cells, "rows": rows, **stamps, "score": score})
    return found
