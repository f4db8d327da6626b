"""Which covariates a network is given, and how they become numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sacm.data.covariates.calendar_features import (
    calendar_features,
    check_calendar,
    holiday_features,
)
from sacm.errors import ArgumentError, DataError

ROLES = ("past", "future", "static")


@dataclass(frozen=True)
class CovariatePlan:
    """The covariates of a run by name.

    Attributes:
        past: Columns that are known up to the last value of the channels.
        future: Columns that are also known for the steps to forecast.
        static: Columns that never change within a series.
        calendar: Features of the calendar: see `FEATURES`.
        holidays: Country, or part of one, whose holidays count; None for none.

    Example:
        >>> plan = CovariatePlan(past=("load",), calendar=("weekend",))
        >>> times = np.array(["2024-01-05", "2024-01-06"], dtype="datetime64[s]")
        >>> plan.features(np.array([[3.0], [4.0]]), times).tolist()
        [[3.0, 0.0], [4.0, 1.0]]
    """

    past: tuple[str, ...] = ()
    future: tuple[str, ...] = ()
    static: tuple[str, ...] = ()
    calendar: tuple[str, ...] = ()
    holidays: str | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> CovariatePlan:
        """The plan that options of a run ask for; those that are None or absent ask for nothing."""
        given = {name: value for name, value in options.items() if value}
        names = {name: _as_names(given.get(name, ())) for name in (*ROLES, "calendar")}
        names["calendar"] = check_calendar(names["calendar"])
        return cls(**names, holidays=given.get("holidays"))

    def __post_init__(self) -> None:
        twice = [name for name in self.columns if self.columns.count(name) > 1]
        if twice:
            raise ArgumentError(
                f"column {twice[0]!r} is named twice: it is a past, a future or a static covariate."
            )

    def __bool__(self) -> bool:
        return bool(self.columns or self.calendar or self.holidays)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the user's table that are covariates, those of the past first."""
        return (*self.past, *self.future, *self.static)

    @property
    def needs_times(self) -> bool:
        """Whether the features cannot be made without timestamps."""
        return bool(self.calendar or self.holidays)

    def features(self, columns: np.ndarray | None, stamps: np.ndarray | None) -> np.ndarray:
        """What a network is told about N rows.

        Args:
            columns: Values `[N, k]` of `self.columns`; None if there are none.
            stamps: Times `[N]` by the local clock; None if there are none.

        Returns:
            `[N, K]` float32: the columns, then the calendar, then the holidays.
        """
        parts = [] if columns is None else [columns.astype(np.float32)]
        if self.needs_times and stamps is None:
            raise DataError("calendar and holidays need timestamps, which the data do not have.")
        if self.calendar and stamps is not None:
            parts.append(calendar_features(stamps, self.calendar))
        if self.holidays and stamps is not None:
            parts.append(holiday_features(stamps, self.holidays))
        return np.concatenate(parts, axis=1)

    def describe(self) -> list[str]:
        """Short lines for the user: the columns by their role."""
        words = {
            "past": "past covariates (past=): {}, inputs only",
            "future": "known-future covariates (future=): {}",
            "static": "static features (static=): {}",
        }
        named = {role: getattr(self, role) for role in ROLES}
        return [words[role].format(", ".join(names)) for role, names in named.items() if names]


def _as_names(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)
