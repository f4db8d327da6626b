"""Faults by name: one entry for everything that a kind of fault can be put into."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sacm.faults.channel import SeriesFault
from sacm.faults.window_operators import WindowFault
from sacm.registry import Registry

ValueFault = Callable[[np.ndarray, float, int], np.ndarray]
LabelFault = Callable[[np.ndarray, int, float, np.random.Generator], np.ndarray]


@dataclass(frozen=True)
class Fault:
    """What one kind of fault does to data of each form; None where it is not defined.

    Attributes:
        title: One line for people.
        series: Breaks one channel of a series in places.
        windows: Breaks z-scored windows `[B, L, C]` by severities `[B]`.
        values: `(x, level, seed)`: changes every value of an array `[..., C]`.
        labels: `(codes, classes, ratio, random)`: wrong labels instead of class numbers `[N]`.
        parts: The kinds that a mixture consists of; each gets an equal share of the ratio.
        largest: The largest level of `values`.
    """

    title: str
    series: SeriesFault | None = None
    windows: WindowFault | None = None
    values: ValueFault | None = None
    labels: LabelFault | None = None
    parts: tuple[str, ...] = ()
    largest: float = np.inf


FAULTS: Registry[Fault] = Registry("fault", missing="There is no")


def register_fault(name: str, fault: Fault) -> Fault:
    """Make a fault available by name to `break_series`, `break_windows`, `corrupt` and protocols.

    Args:
        name: The kind to ask for.
        fault: What it does.

    Raises:
        ArgumentError: If the name is taken.

    Example:
        >>> import numpy as np
        >>> from sacm.faults.channel import on_stretches
        >>> from sacm.faults.series import break_series
        >>> from sacm.registry import temporary_entries
        >>> def invert(stretch, channel, random):
        ...     return 2 * channel.centre - stretch
        >>> with temporary_entries():
        ...     fault = Fault("values are mirrored at the mean", series=on_stretches(invert))
        ...     _ = register_fault("inverted", fault)
        ...     rows = np.random.default_rng(0).normal(size=(500, 2))
        ...     break_series(rows, "inverted", 0.2).broken.mean().round(1)
        np.float64(0.2)
    """
    origin = fault.series or fault.windows or fault.values or fault.labels
    return FAULTS.register(name, origin=origin)(fault)


def register_values(name: str, title: str, function: ValueFault, *, largest: float) -> None:
    """Add what a fault does to whole arrays, to a kind that exists or as a new one."""
    known = FAULTS.find(name, plugins=False)
    if known is None:
        fault = Fault(title, values=function, largest=largest)
        FAULTS.register(name, origin=function)(fault)
        return
    FAULTS.register(name, origin=known.values or function)(
        replace(known, values=function, largest=largest)
    )
