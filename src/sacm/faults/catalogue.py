"""Every fault of this package, registered once; plug-ins add theirs to the same registry."""

from __future__ import annotations

from sacm.faults.labels import flip_to_any, flip_to_next
from sacm.faults.noise import add_gaussian_noise, add_student_t, blank_entries
from sacm.faults.registry import FAULTS, Fault
from sacm.faults.series_operators import MIXTURES, OPERATORS, from_window_fault
from sacm.faults.window_operators import TESTED, TRANSFER

_WINDOWS = {**TESTED, **TRANSFER}
_WHOLE = {
    "gaussian": ("normal noise in every value", add_gaussian_noise),
    "student_t": ("noise with heavy tails in every value", add_student_t),
}


def _register_all() -> None:
    """Series first: the order decides the codes of kinds."""
    for name, (title, series) in OPERATORS.items():
        fault = Fault(title, series=series, windows=_WINDOWS.get(name))
        if name == "missing":
            fault = Fault(title, series=series, values=blank_entries, largest=1.0)
        FAULTS.register(name)(fault)
    for name, operator in _WINDOWS.items():
        if name not in OPERATORS:
            title = (operator.__doc__ or "").partition("\n")[0].rstrip(".")
            title = title[:1].lower() + title[1:]
            fault = Fault(title, series=from_window_fault(operator), windows=operator)
            FAULTS.register(name)(fault)
    for name, parts in MIXTURES.items():
        FAULTS.register(name)(Fault(f"{', '.join(parts)} in equal shares", parts=parts))
    for name, (title, function) in _WHOLE.items():
        FAULTS.register(name)(Fault(title, values=function))
    for name, title, labels in (
        ("symmetric", "labels become any other class", flip_to_any),
        ("asymmetric", "labels become the next class", flip_to_next),
    ):
        FAULTS.register(name)(Fault(title, labels=labels))
    FAULTS.register("anomalies")(
        Fault(
            "stretches of rows are anomalous in several channels",
            parts=("shift", "burst", "drift", "stuck", "scaling"),
        )
    )


_register_all()
__all__ = ["FAULTS", "Fault"]
