"""Covariates of a table set apart from its channels, and the rows beyond the end kept for later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sacm.data.covariates import CovariatePlan
from sacm.data.datasets import ForecastingData
from sacm.data.gaps import Policy, fill
from sacm.data.splits import Splits
from sacm.data.tables.form import Form
from sacm.data.tables.panel import Panel
from sacm.data.tables.table import Table
from sacm.errors import DataError


@dataclass(frozen=True, eq=False)
class Separated:
    """One series: its channels, and its covariates row for row.

    Attributes:
        table: The series without its covariates, up to the last row with a value of a channel.
        columns: Covariates `[T, k]` of these rows, NaN where one is missing.
        ahead: Covariates `[N, k]` of the rows that follow; past ones are 0 there.
    """

    table: Table
    columns: np.ndarray
    ahead: np.ndarray


def separate_table(table: Table, plan: CovariatePlan, target: Sequence[str] = ()) -> Separated:
    """Set the covariates of a table apart.

    Rows after the last value of the channels, or of those in `target`, hold known-future
    covariates. What else they hold is dropped here, before gaps are filled, so that nothing can use
    it.

    Raises:
        DataError: No column is left to forecast, or a static feature changes.
    """
    if table.columns is None:
        raise DataError(f"{table.where} is an array, whose columns have no names: use a frame.")
    places = [table.columns.index(name) for name in plan.columns]
    rest = [place for place in range(len(table.columns)) if place not in places]
    if not rest:
        raise DataError(f"{table.where}: every column is a covariate, so none is left to forecast.")
    channels, columns = table.values[:, rest], table.values[:, places]
    check_static(columns, plan, table.where)
    aim = [i for i, place in enumerate(rest) if not target or table.columns[place] in target]
    known = np.flatnonzero(~np.isnan(channels[:, aim]).all(axis=1))
    stop = int(known[-1]) + 1 if plan.future and len(known) else len(channels)
    ahead = columns[stop:].copy()
    ahead[:, : len(plan.past)] = 0
    kept = replace(
        table, values=np.ascontiguousarray(channels), columns=tuple(table.columns[i] for i in rest)
    )
    return Separated(kept.cut(0, stop), np.ascontiguousarray(columns[:stop]), ahead)


def check_static(columns: np.ndarray, plan: CovariatePlan, where: str) -> None:
    """Refuse static features that change within a series."""
    for name in plan.static:
        values = columns[:, plan.columns.index(name)]
        found = np.unique(values[~np.isnan(values)])
        if len(found) != 1:
            what = "changes" if len(found) else "has no value"
            raise DataError(
                f"{where}: static feature {name!r} {what}: name it with past= or future=, or fill "
                "it in."
            )


def separate(
    found: Table | Panel, plan: CovariatePlan, target: Sequence[str] = ()
) -> tuple[Table | Panel, list[Separated]]:
    """A table or a panel without its covariates, and the covariates of every series."""
    tables = [found] if isinstance(found, Table) else found.series
    parts = [separate_table(one, plan, target) for one in tables]
    form = shorten_counters(found.form, parts)
    if isinstance(found, Table):
        return replace(parts[0].table, form=form), parts
    channels = parts[0].table.names
    form = replace(form, channels=channels)
    return replace(found, series=tuple(part.table for part in parts), form=form), parts


def shorten_counters(form: Form, parts: Sequence[Separated]) -> Form:
    """A form whose counters end with the last row of the channels."""
    cut = {
        name: (last - step * len(part.ahead), step)
        for (name, (last, step)), part in zip(form.counters.items(), parts, strict=False)
    }
    return replace(form, counters=cut)


def add_separated(
    data: ForecastingData,
    parts: Sequence[Separated],
    plan: CovariatePlan,
    *,
    order: Sequence[tuple[int, range]],
    splits: Sequence[Splits],
    missing: Policy,
) -> ForecastingData:
    """Data with the covariates of their series, gaps filled like those of the channels.

    Args:
        data: The channels.
        parts: Every series.
        plan: Names and roles of the columns.
        order: Which rows of which series follow each other in `data`.
        splits: The splits of every series; nothing is filled in from a later one.
        missing: How gaps are treated; "mask" fills them too, for only targets are counted.
    """
    policy: Policy = "error" if missing == "error" else "interpolate"
    filled = [
        fill(part.columns, own, policy=policy, columns=plan.columns, where=part.table.where)
        for part, own in zip(parts, splits, strict=True)
    ]
    columns = np.concatenate([filled[i].values[rows.start : rows.stop] for i, rows in order])
    notes = [f"Covariates: {one.note}" for one in filled if one.note]
    if plan.static and len(parts) == 1:
        notes.append("Static features tell series apart, and there is only one.")
    ahead = {part.table.name: part.ahead for part in parts if len(part.ahead)}
    lines = plan.describe()
    if plan.future and ahead:
        rows = sorted({len(own) for own in ahead.values()})
        span = f"{rows[0]:,}" if len(rows) == 1 else f"{rows[0]:,} to {rows[-1]:,}"
        lines.append(f"rows beyond the last value to forecast from: {span}")
    roles: dict[str, Any] = {role: getattr(plan, role) for role in ("past", "future", "static")}
    return replace(
        data,
        covariates=columns,
        ahead=ahead or None,
        notes=(*data.notes, *notes[:1]),
        understood=(*data.understood, *lines),
        **roles,
    )
