"""Rows of telemetry, and a score for every one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sacm.backbones.base import Backbone
from sacm.data.datasets import AnomalyData
from sacm.data.own.series import choose, index_note, load_source, take_times
from sacm.data.own.telemetry import LABEL_NAMES
from sacm.data.scaling import ChannelScaler
from sacm.data.splits import hold_out_tail
from sacm.data.tables.columns import coarse_note, from_array, matrix
from sacm.data.tables.gaps import Policy, fill
from sacm.data.tables.timeline import sort_rows
from sacm.data.windows.reader import Series, covering_starts
from sacm.data.windows.windows import TelemetryWindows
from sacm.errors import ArgumentError, DataError
from sacm.settings import ResolvedSettings
from sacm.strategies.base import Strategy
from sacm.tasks.anomaly import step_scores


class Rows(NamedTuple):
    """Values in order of time, and the row of the user's table that each came from."""

    name: str
    values: np.ndarray  # [T, C]
    columns: tuple[str, ...] | None  # None for an array
    order: np.ndarray  # [T]
    notes: tuple[str, ...]


def read_rows(
    source: Any,
    *,
    columns: Sequence[str] | None = None,
    missing: Policy,
    held_out: float = 0.0,
) -> Rows:
    """Rows of a file, frame or array; a column of labels is left out, `columns` chooses others.

    No gap is filled from the last rows, the `held_out` share.
    """
    name = "data" if hasattr(source, "__len__") and not isinstance(source, str) else str(source)
    table = load_source(source, name)
    names: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()
    if isinstance(table, np.ndarray):
        values = from_array(table, name)
        order = np.arange(len(values))
    else:
        unused = index_note(table)
        times, table = take_times(table, None, name)
        # Rows that a grid lacks have no place in the answer, so none are inserted.
        line = sort_rows(times, len(table), where=name).noting(unused)
        kept = [column for column in table.columns if column.lower() not in LABEL_NAMES]
        table = choose(table, kept if columns is None else columns, name)
        order, notes = line.rows, line.notes
        values, names = matrix(table, name)[order], tuple(table.columns)
    coarse = coarse_note(table)
    labels = names or tuple(str(position) for position in range(values.shape[1]))
    pieces = hold_out_tail(len(values), held_out)
    filled = fill(values, pieces, policy=missing, columns=labels, where=name)
    notes = (*notes, *(note for note in (coarse, filled.note) if note))
    return Rows(name, filled.values, names, order, notes)


def without_rows(channels: int, columns: Sequence[str] = ()) -> AnomalyData:
    """A container that says for how many channels a network is to be built, and no more."""
    nothing = np.empty((0, channels), dtype=np.float32)
    return AnomalyData(
        name="data",
        train=nothing,
        test=nothing,
        labels=np.empty(0, dtype=np.uint8),
        columns=tuple(columns),
    )


def row_scores(
    model: Backbone,
    rows: Rows,
    *,
    settings: ResolvedSettings,
    strategy: Strategy,
    scaler: ChannelScaler,
) -> np.ndarray:
    """A score `[T]` for every row, in the order of the user's table."""
    length = settings.input_len
    if rows.values.shape[1] != scaler.channels:
        raise ArgumentError(
            f"the network was trained on {scaler.channels} channels but {rows.name} has "
            f"{rows.values.shape[1]}."
        )
    if len(rows.values) < length:
        raise DataError(
            f"{rows.name} has {len(rows.values)} rows, fewer than one window of {length}."
        )
    everything = range(len(rows.values))
    starts = covering_starts(everything, length, stride=min(settings.stride, length))
    windows = TelemetryWindows(Series(rows.values, scaler), starts, length=length, scaler=scaler)
    scores = np.empty(len(rows.values))
    scores[rows.order] = step_scores(model, windows, settings, strategy, order=rows.order)
    return scores
