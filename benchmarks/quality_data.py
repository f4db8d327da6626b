"""Training rows of a data set as one table with its pieces."""

from __future__ import annotations

import numpy as np

import sacm


def load_pieces(name: str) -> tuple[np.ndarray, list[range]]:
    """Training rows `[T, C]` and the ranges of rows that are series of their own.

    Args:
        name: Name of a data set; `SMD:machine-1-1` for one of its machines alone.
    """
    name, _, machine = name.partition(":")
    data = sacm.data.load(name)
    if isinstance(data, sacm.data.ForecastingData):
        parts = [data.values[piece.start : piece.stop] for piece in data.ranges("train")]
    elif isinstance(data, sacm.data.AnomalyData):
        chosen = [one for one in data.segments if machine in ("", one.name)]
        ranges = (segment.train for segment in chosen)
        parts = [data.train[piece.start : piece.stop] for piece in ranges]
    else:
        cases = zip(data.X_train, data.lengths_train, strict=True)
        parts = [case[:, :length].T for case, length in cases]
    stops = np.cumsum([len(part) for part in parts])
    pieces = [
        range(int(stop) - len(part), int(stop)) for part, stop in zip(parts, stops, strict=True)
    ]
    return np.concatenate(parts).astype(float), pieces
