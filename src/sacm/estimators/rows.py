"""Rows of telemetry, and a score for every one of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sacm.backbones.base import Backbone
from sacm.data.datasets import AnomalyData
from sacm.data.scaling import ChannelScaler
from sacm.data.splits import hold_out_tail
from sacm.data.tables.gaps import Policy
from sacm.data.tables.table import Table
from sacm.data.windows.reader import Series, covering_starts
from sacm.data.windows.windows import TelemetryWindows
from sacm.errors import ArgumentError, DataError
from sacm.strategies.base import Strategy
from sacm.tasks.anomaly import step_scores
from sacm.tasks.settings import RunSettings


def read_rows(
    source: Any,
    *,
    columns: Sequence[str] | None = None,
    missing: Policy,
    held_out: float = 0.0,
) -> Table:
    """Rows of a file, frame or array; a column of labels is left out, `columns` chooses others.

    No gap is filled from the last rows, the `held_out` share.
    """
    name = str(source) if isinstance(source, str | Path) else "data"
    # Rows that a grid lacks have no place in the answer, so none are inserted.
    table = Table.read(source, name=name, columns=columns, labelled=True, grid=False)
    return table.fill(hold_out_tail(len(table.values), held_out), missing)


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
    rows: Table,
    *,
    settings: RunSettings,
    strategy: Strategy,
    scaler: ChannelScaler,
) -> np.ndarray:
    """A score `[T]` for every row, in the order of the user's table."""
    length = settings.input_len
    assert length is not None
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
