"""The faults by name, each for series, windows, rows or labels."""

from __future__ import annotations

from sacm_lab.robust.faults.fault import Fault
from sacm_lab.robust.faults.rows import (
    CHANGES,
    add_anomalies,
    flip_to_any,
    flip_to_next,
    on_labels,
    on_rows,
)
from sacm_lab.robust.faults.series import ALL, MIX, SERIES, from_window_fault
from sacm_lab.robust.faults.windows import WINDOWS


def _title(name: str) -> str:
    """The first line of a window fault's docstring, as a phrase."""
    line = (WINDOWS[name].__doc__ or "").partition("\n")[0].rstrip(".")
    return line[:1].lower() + line[1:]


FAULTS: dict[str, Fault] = {
    name: Fault(name, title, series=series, windows=WINDOWS.get(name))
    for name, (title, series) in SERIES.items()
}
FAULTS |= {
    name: Fault(name, _title(name), series=from_window_fault(operator), windows=operator)
    for name, operator in WINDOWS.items()
    if name not in SERIES
}
_MADE = (
    Fault("mix", f"{', '.join(MIX)} in equal shares", parts=MIX),
    Fault("all", f"{', '.join(ALL)} in equal shares", parts=ALL),
    Fault("symmetric", "labels become any other class", training=on_labels(flip_to_any)),
    Fault("asymmetric", "labels become the next class", training=on_labels(flip_to_next)),
    Fault(
        "anomalies",
        "segments of rows are anomalous in several channels",
        training=on_rows(add_anomalies),
        parts=tuple(CHANGES),
    ),
)
FAULTS |= {fault.name: fault for fault in _MADE}


def __getattr__(name: str) -> Fault:
    """Give a fault as an attribute of this module, which the registry refers to."""
    if name not in FAULTS:
        raise AttributeError(name)
    return FAULTS[name]
