"""The shape of a trained network: what is needed to build and to use it without its data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from sacm.errors import DataError

CalendarSizes = tuple[int, int, int, int]


@dataclass(frozen=True)
class NetworkShape:
    """What a network takes and gives; `model.json` of a run folder.

    Attributes:
        channels: Number of channels C.
        input_len: Steps L of a window.
        horizon: Steps H of a forecast; 0 for other tasks.
        classes: The labels, in the order of the network's outputs; empty for other tasks.
        calendar_sizes: Sizes of the calendar tables; None if the network has none.
        columns: Names of the channels; None if the training data had none.
        frequency: Time step of the training data as a pandas alias, if it is known.
        stamped: Whether the training data had timestamps.
        covariates: Means and deviations of the covariates in the training rows, `[K]` each; None if
            the network takes none.
    """

    channels: int
    input_len: int
    horizon: int = 0
    classes: tuple[Any, ...] = ()
    calendar_sizes: CalendarSizes | None = None
    columns: tuple[str, ...] | None = None
    frequency: str | None = None
    stamped: bool = False
    covariates: tuple[tuple[float, ...], tuple[float, ...]] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a run's record."""
        return asdict(self)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """The shape that `to_dict` described.

        Raises:
            TypeError: The record lacks a size, or has an entry that is not known.
        """
        lists = ("classes", "calendar_sizes", "columns")
        tuples = {
            name: None if record[name] is None else tuple(record[name])
            for name in lists
            if name in record
        }
        scale = record.get("covariates")
        if scale is not None:
            mean, std = scale
            tuples["covariates"] = (tuple(mean), tuple(std))
        return cls(**{**record, **tuples})

    def check_columns(self, name: str, found: Sequence[str]) -> None:
        """Refuse data whose columns are not those that were trained on, in their order.

        Args:
            name: What the error calls the data.
            found: The columns of the data.

        Raises:
            DataError: The columns are others. Never if the training data had no names.
        """
        check_trained_columns(name, found, self.columns)


def check_trained_columns(name: str, found: Sequence[str], trained: Sequence[str] | None) -> None:
    """Refuse columns other than those that were trained on, if these have names."""
    if trained is not None and tuple(found) != tuple(trained):
        raise DataError(
            f"{name} has the columns {', '.join(found)} but {', '.join(trained)} were trained on."
        )


def column_names(columns: Sequence[str]) -> tuple[str, ...] | None:
    """Names of columns; None if they are only the positions that columns of an array have."""
    names = tuple(map(str, columns))
    positions = tuple(str(place) for place in range(len(names)))
    return None if names == positions else names
