"""What the use of a trained network needs to know of its data, which may be far away by then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from sacm.errors import DataError


@dataclass(frozen=True)
class DataRecord:
    """Names of the channels (None if they had none), time step, and classes, as far as there are.

    `stamped` says whether there were timestamps.
    """

    columns: tuple[str, ...] | None
    stamped: bool = False
    frequency: str | None = None
    classes: tuple[Any, ...] = ()

    @classmethod
    def of(cls, data: Any) -> Self:
        """What a data container says."""
        columns = tuple(map(str, getattr(data, "columns", ())))
        return cls(
            # The columns of an array are called by their positions, which say nothing.
            columns=None if columns == positions(len(columns)) else columns,
            stamped=getattr(data, "timestamps", None) is not None,
            frequency=getattr(data, "frequency", None),
            classes=tuple(np.asarray(getattr(data, "classes", ())).tolist()),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a run's record."""
        return asdict(self)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """The record that `to_dict` described."""
        columns = record["columns"]
        named = {"columns": None if columns is None else tuple(columns)}
        return cls(**{**record, **named, "classes": tuple(record["classes"])})


def positions(count: int) -> tuple[str, ...]:
    """What the columns of an array are called."""
    return tuple(str(position) for position in range(count))


def check_columns(name: str, found: Sequence[str], trained: Sequence[str]) -> None:
    """Refuse data whose columns are not those that were trained on, in their order."""
    if tuple(found) != tuple(trained):
        raise DataError(
            f"{name} has the columns {', '.join(found)} but {', '.join(trained)} were trained on."
        )
