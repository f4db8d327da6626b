"""Places in a grid of runs, and the part of a grid that is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Key = str | int | float


@dataclass(frozen=True)
class Point:
    """One place in a grid: the settings that its rows share, and the keys that name it.

    strategies: The names of its rows; changes: settings of a row that is more than a strategy, by
    its name; checks: what a finished run of a row is also tested by.
    """

    keys: dict[str, Key]
    settings: dict[str, Any]
    strategies: tuple[str, ...]
    target: str | None = None
    changes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    checks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def settings_of(self, row: str) -> dict[str, Any]:
        """The settings of one row."""
        return {**self.settings, "strategy": row, **self.changes.get(row, {})}


@dataclass(frozen=True)
class Selection:
    """The part of an experiment's grid to look at, and how to run it; empty means: as declared.

    sizes: those to try for each point, the preferred one first; `small` backbones have no other.
    """

    datasets: tuple[str, ...] = ()
    backbones: tuple[str, ...] = ()
    horizons: tuple[int, ...] = ()
    seeds: tuple[int, ...] = ()
    sizes: tuple[str, ...] = ("paper",)
    small: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def sizes_of(self, backbone: str) -> tuple[str, ...]:
        """The sizes to look for, in order."""
        return ("small",) if backbone in self.small else self.sizes
