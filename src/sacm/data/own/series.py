"""A user's own series, from a file, an array or a data frame, as `ForecastingData`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from sacm.data.covariates import CovariatePlan
from sacm.data.datasets import ForecastingData
from sacm.data.gaps import Policy
from sacm.data.own.panel import level_note, panel_data, split_major
from sacm.data.own.separate import Separated, add_separated, separate
from sacm.data.splits import DEFAULT_RATIOS, split_by_ratio
from sacm.data.tables.date_text import DateOrder
from sacm.data.tables.number_text import Decimal
from sacm.data.tables.panel import Panel, read_table_or_panel
from sacm.data.tables.source import load_source
from sacm.data.tables.table import Table, as_list
from sacm.data.tables.timeline import Irregular
from sacm.errors import ArgumentError, DataError

MIN_ROWS = 3
ALL_ROWS = (1.0, 0.0, 0.0)  # ratios that put every row in the first split
NO_COVARIATES = CovariatePlan()
Layout = Literal["auto", "channels", "series"]
Scaling = Literal["series", "shared"]
Shares = tuple[float, float, float]


def forecasting_data(
    source: Any,
    *,
    name: str | None = None,
    timestamp: str | Sequence[str] | None = None,
    columns: str | Sequence[str] | None = None,
    target: str | Sequence[str] | None = None,
    past: str | Sequence[str] = (),
    future: str | Sequence[str] = (),
    static: str | Sequence[str] = (),
    ignore: str | Sequence[str] = (),
    label: str | None = None,
    id: str | Sequence[str] | None = None,
    ratios: Shares = DEFAULT_RATIOS,
    missing: Policy = "interpolate",
    irregular: Irregular = "error",
    frequency: str | None = None,
    layout: Layout = "auto",
    date_order: DateOrder | None = None,
    zone: str | None = None,
    decimal: Decimal | None = None,
    scaling: Scaling = "series",
) -> ForecastingData:
    """Read a series to forecast, and split it.

    Reading also splits because gaps are filled here: a value at the end of the training rows must
    not be interpolated from the validation rows that follow, or the model would see the future.

    Args:
        source: A CSV, Parquet, Excel, `.npy` or `.npz` file; a folder of CSV files, a series each;
            a pandas or polars frame, wide (timestamp and channels) or long (an id, timestamp and
            channels); an array or tensor `[T]` or `[T, C]`.
        name: A short name. Default: that of the file, or "data".
        timestamp: The time column of a wide table, or several that make the time together.
            Default: found by name or content.
        columns: The channels. Default: all columns but the time, labels, counters and parts of the
            calendar; `y` of a table `unique_id, ds, y`.
        target: The channels to forecast; the others are inputs only and count in no error. Default:
            all.
        past: Columns that are inputs only: covariates, which are not forecast.
        future: Covariates that are known ahead; rows after the last value of the channels hold
            them for the steps to forecast.
        static: Covariates that never change within a series of several.
        ignore: Columns to leave out.
        label: A column of labels, which is no channel. Default: found by name.
        id: The column that tells several series apart, or several that do together. Default:
            `unique_id` beside `ds` and `y`, or found where times occur more than once.
        ratios: Shares of the rows for training, validation and test.
        missing: "interpolate", "mask" (the same, and marked in `observed`) or "error".
        irregular: "error" refuses timestamps on no grid, "keep" takes rows as evenly spaced.
        frequency: The time step as a pandas alias. Default: found from the timestamps.
        layout: What the series of a long table become: "channels" of one, "series" of one channel
            each, or "auto": channels if they share all timestamps.
        date_order: How to read dates such as 01/02/03: "day first", "month first" or "year first".
            Default: as needs the least sorting and filling.
        zone: The time zone of times that name none, and in which all are given back.
        decimal: "," or ".", the sign before the fraction of numbers in text; the other sign then
            separates thousands. Default: a point, and no thousands.
        scaling: Whether each of several "series" is scaled by its own training rows, or all by
            "shared" ones.

    Returns:
        The data; `notes` says what was guessed and repaired.

    Raises:
        DataError: The data cannot be read; the sentence says where and what to do.
        ArgumentError: An option is wrong.

    Example:
        >>> data = forecasting_data(np.arange(100.0), name="counter")
        >>> data.values.shape, [len(rows) for rows in data.splits]
        ((100, 1), [70, 10, 20])
    """
    plan = CovariatePlan.of({"past": past, "future": future, "static": static})
    found = read_series(
        source,
        name=name,
        timestamp=timestamp,
        columns=columns,
        ignore=ignore,
        label=label,
        id=id,
        irregular=irregular,
        frequency=frequency,
        date_order=date_order,
        zone=zone,
        decimal=decimal,
        covariates=plan.columns,
    )
    data = series_data(
        found,
        ratios=ratios,
        missing=missing,
        layout=layout,
        plan=plan,
        target=target,
        scaling=scaling,
    )
    return choose_target(data, target)


def read_series(
    source: Any,
    *,
    name: str | None = None,
    timestamp: str | Sequence[str] | None = None,
    columns: str | Sequence[str] | None = None,
    ignore: str | Sequence[str] = (),
    label: str | None = None,
    id: str | Sequence[str] | None = None,
    irregular: Irregular = "error",
    frequency: str | None = None,
    date_order: DateOrder | None = None,
    zone: str | None = None,
    decimal: Decimal | None = None,
    covariates: Sequence[str] = (),
) -> Table | Panel:
    """Read what `forecasting_data` reads, but do not split it or fill gaps; see there.

    Columns named in `covariates` are read beside the channels, whatever they look like.

    Returns:
        A table, or a panel if the source holds several series. `understood()` of both says how the
        source was read, `form` how to give results back.
    """
    return read_table_or_panel(
        load_source(source, name, decimal),
        id=id,
        time=timestamp,
        columns=columns,
        ignore=ignore,
        label=label,
        irregular=irregular,
        frequency=frequency,
        date_order=date_order,
        zone=zone,
        also=covariates,
    )


def choose_target(data: ForecastingData, target: str | Sequence[str] | None) -> ForecastingData:
    """The same data with the channels to forecast; None: all of them.

    Raises:
        DataError: There is no such channel.
    """
    if target is None:
        return data
    wanted = tuple(as_list(target))
    for name in wanted:
        if name not in data.columns:
            known = ", ".join(data.columns[:8])
            raise DataError(f"{data.name}: target {name!r} is no channel; channels are {known}.")
    if not wanted or set(wanted) == set(data.columns):
        return data
    line = f"target: {', '.join(wanted)}; the other channels are inputs only"
    return replace(data, target=wanted, understood=(*data.understood, line))


def series_data(
    found: Table | Panel,
    *,
    ratios: Shares = DEFAULT_RATIOS,
    missing: Policy = "interpolate",
    layout: Layout = "auto",
    plan: CovariatePlan = NO_COVARIATES,
    target: str | Sequence[str] | None = None,
    scaling: Scaling = "series",
) -> ForecastingData:
    """Split what `read_series` has read, and fill the gaps inside each split."""
    if scaling not in ("series", "shared"):
        raise ArgumentError(f"scaling must be series or shared, got {scaling!r}.")
    form = found.form
    zone = None if form.local else form.zone
    if plan.columns:
        parted = separate(found, plan, as_list(target or ()))
        data = _covariate_data(*parted, plan, ratios=ratios, missing=missing)
    elif isinstance(found, Panel):
        data = panel_data(found, ratios=ratios, missing=missing, layout=layout)
    else:
        data = table_data(found, ratios=ratios, missing=missing)
    # Channels side by side have a scale each anyway.
    if len(data.last_rows(1)) < 2:
        return replace(data, zone=zone)
    notes = level_note(found) if scaling == "shared" and isinstance(found, Panel) else ()
    own = "series" if scaling == "series" else None
    return replace(data, zone=zone, scaling=own, notes=(*data.notes, *notes))


def _covariate_data(
    channels: Table | Panel,
    parts: list[Separated],
    plan: CovariatePlan,
    *,
    ratios: Shares,
    missing: Policy,
) -> ForecastingData:
    """Split channels and covariates alike; several series stay series, each with its own."""
    if isinstance(channels, Panel):
        data = panel_data(channels, ratios=ratios, missing=missing, layout="series")
    else:
        data = table_data(channels, ratios=ratios, missing=missing)
    splits = [split_by_ratio(len(part.columns), ratios) for part in parts]
    order, _, _ = split_major([part.table.name for part in parts], splits)
    return add_separated(data, parts, plan, order=order, splits=splits, missing=missing)


def table_data(table: Table, *, ratios: Shares, missing: Policy) -> ForecastingData:
    """Split a table, fill its gaps inside each split, and say what is odd."""
    rows = len(table.values)
    if rows < MIN_ROWS and ratios != ALL_ROWS:
        raise DataError(f"{table.where} has {rows} rows: too few to train, choose and test on.")
    splits = split_by_ratio(rows, ratios)
    filled = table.fill(splits, missing)
    constant = constant_note(filled.values, splits.train, filled.names)
    return ForecastingData(
        name=filled.name,
        values=filled.values,
        columns=filled.names,
        splits=splits,
        timestamps=filled.times,
        frequency=filled.frequency,
        observed=filled.observed,
        notes=(*filled.notes, constant) if constant else filled.notes,
        understood=tuple(table.understood()),
    )


def constant_note(values: np.ndarray, rows: range, columns: Sequence[str]) -> str | None:
    """A note on channels that never change in training."""
    part = values[rows.start : rows.stop]
    if not len(part):
        return None
    flat = np.flatnonzero(part.min(axis=0) == part.max(axis=0))
    if not len(flat):
        return None
    named = ", ".join(repr(columns[position]) for position in flat[:5])
    more = f" and {len(flat) - 5} more" if len(flat) > 5 else ""
    return f"Constant in the training rows, so there is nothing to learn: {named}{more}."
