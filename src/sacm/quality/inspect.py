"""`sacm.inspect`: look at data of any kind and say what is broken."""

from __future__ import annotations

from typing import Any

from sacm.quality.guard import Guard
from sacm.quality.recording import read_recording


def inspect(
    data: Any,
    train: Any = None,
    rules: Any = None,
    false_events: float = 1.0,
    *,
    repair: str = "fail",
    keep: Any = None,
    time: str | None = None,
    y: Any = None,
) -> Any:
    """Find broken values and repair them; unusual ones, which may be real, are only reported.

    Args:
        data: A pandas or polars frame, array `[T]` or `[T, C]`, tensor, file, long table
            `unique_id, ds, y`, or a data set of forecasting or of anomaly detection; with `y`
            cases `[N, C, L]`.
        train: Rows that thresholds are learnt from: a share in (0, 1], a number of rows, or a
            range. None: the data set's own training part, or all rows.
        rules: A rules file or a dict of rules; see `sacm.quality.rules`.
        false_events: Expected false fail events in 10,000 normal values.
        repair: Which grades are repaired: "fail", "all" or "none".
        keep: Events that stay as measured: a table of `to_frame` with its column `keep` filled in.
        time: The time column of a frame or file, where it is not found by itself.
        y: Labels `[N]` of cases to judge; `keep` then holds positions of cases with a right label.

    Returns:
        A `Quality`; with labels a `LabelQuality` of `sacm.quality.labels`.

    Example:
        >>> import numpy as np
        >>> rows = np.random.default_rng(0).normal(size=600)
        >>> rows[200:240] = rows[200]
        >>> [event.kind for event in inspect(rows).events]
        ['stuck']
    """
    if y is not None:
        from sacm.quality.labels import find_wrong_labels

        return find_wrong_labels(data, y, keep=() if keep is None else keep)
    recording = read_recording(data, train, reading={} if time is None else {"time": time})
    return Guard(rules, false_events, None, repair, keep).fit_inspect(recording)
