"""Learn from repaired data, and repair what is predicted from."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from sacm.errors import ArgumentError
from sacm.strategies.base import Prepared, Strategy
from sacm.strategies.registry import register

if TYPE_CHECKING:
    from sacm.quality.guard import Guard
    from sacm.quality.windows import WindowGuard

REPAIRS = ("fail", "all", "none")
_GUARD, _WINDOWS = "guard.safetensors", "window_guard.safetensors"


@register("guard")
@dataclass(frozen=True)
class GuardStrategy(Strategy):
    """Find broken values and repair them before training; repair inputs at prediction as well.

    repair: What is repaired: broken values (fail), unusual ones too (all), or nothing (none).
    rules: A file with what you know about the channels, as `sacm rules` writes one.
    false_events: Expected false events in 10,000 normal values; more find more.
    """

    repair: str = "fail"
    rules: str = ""
    false_events: float = 1.0

    def __post_init__(self) -> None:
        if not self.false_events > 0:
            raise ArgumentError(f"guard(false_events=…) must be positive, got {self.false_events}.")
        if self.repair not in REPAIRS:
            raise ArgumentError(
                f"guard(repair=…) must be {', '.join(REPAIRS)}, got {self.repair!r}."
            )

    def prepare(self, data: Any, *, window: int) -> Prepared:
        """Fit a guard on the training part and repair what is learnt from."""
        from sacm.data.datasets import ForecastingData
        from sacm.quality.guard import Guard
        from sacm.quality.prepare import repair_for_training
        from sacm.quality.windows import SHORTEST_WINDOW

        windows = isinstance(data, ForecastingData) and window >= SHORTEST_WINDOW
        guard = Guard(
            self.rules or None, self.false_events, window if windows else None, self.repair
        ).fit(data)
        repaired = repair_for_training(data, guard)
        module = scaled_module(guard, repaired.data, window) if windows else None
        notes = []
        if repaired.share:
            share = f"{repaired.share:.2%}"
            notes.append(f"{share} of the training values are broken and were repaired.")
        fitted = FittedGuard(self.repair, self.rules, self.false_events, guard, module)
        filled, _, said, *_ = super().prepare(repaired.data, window=window)
        return Prepared(filled, fitted, (*notes, *said))

    def load(self, folder: Path) -> Strategy:
        """The strategy as a run has fitted it."""
        from sacm.files import read_metadata, read_weights
        from sacm.quality.guard import Guard, other_version_error
        from sacm.quality.windows import WindowGuard

        guard = Guard.load(folder / _GUARD)
        path = folder / _WINDOWS
        module = None
        if path.exists():
            tensors, text = read_weights(path), read_metadata(path)
            try:
                module = WindowGuard.load(json.loads(text["config"]), tensors)
            except (KeyError, TypeError, ValueError, ArgumentError):
                raise other_version_error(path) from None
        return FittedGuard(self.repair, self.rules, self.false_events, guard, module)


@dataclass(frozen=True)
class FittedGuard(GuardStrategy):
    """The strategy with what it learnt from training rows.

    Attributes:
        guard: For tables.
        module: For z-scored windows of forecasting; None for other tasks and very short windows.
    """

    guard: Guard | None = None
    module: WindowGuard | None = None

    def prepare(self, data: Any, *, window: int) -> Prepared:
        """Repair cases one by one; series are repaired window by window, telemetry never."""
        from sacm.data.datasets import ClassificationData
        from sacm.quality.prepare import repair_for_training

        if self.guard is not None and isinstance(data, ClassificationData):
            data = repair_for_training(data, self.guard).data
        return super(GuardStrategy, self).prepare(data, window=window)

    def inputs(self, x: Tensor, *, training: bool = False) -> Tensor:
        """Windows `[B, L, C]` with what is broken in them repaired; training rows are already."""
        if self.module is None or training or self.repair == "none":
            return x
        repaired: Tensor = self.module.to(x.device)(x)
        return repaired

    def flags(self, x: Tensor) -> Tensor | None:
        """Kinds `[B, L, C]` (uint8) of what `inputs` repairs in windows `[B, L, C]`."""
        if self.module is None or self.repair == "none":
            return None
        found = self.module.inspect(x)
        return found.flags * (found.grades > 1)

    def save(self, folder: Path) -> None:
        """Write what was learnt into the folder of the run."""
        from sacm.files import write_weights

        if self.guard is not None:
            self.guard.save(folder / _GUARD)
        if self.module is not None:
            text = json.dumps(self.module.config())
            write_weights(folder / _WINDOWS, self.module.state_dict(), metadata={"config": text})


def scaled_module(guard: Guard, data: Any, window: int) -> WindowGuard:
    """The guard of windows that the task's scaler has changed.

    Args:
        guard: Fitted on rows before scaling.
        data: The data set with repaired training rows.
        window: Steps of a window.
    """
    from sacm.data.scaling import fit_scaler, scale_training_rows
    from sacm.quality.predictor import Rows
    from sacm.quality.windows import fit_window_guard

    segments = [rows for rows in data.ranges("train") if len(rows) >= window]
    segments = segments or list(data.ranges("train"))
    scaler = fit_scaler(data, segments)
    if not scaler.series:
        return guard.module().rescaled(scaler.mean, scaler.std)
    scaled = scale_training_rows(data, segments)  # every series by itself
    parts = [scaled[rows.start : rows.stop] for rows in segments]
    ends = np.cumsum([0, *map(len, parts)])
    joined = Rows([range(int(a), int(b)) for a, b in pairwise(ends)])
    return fit_window_guard(np.concatenate(parts), window, rows=joined, config=guard.config_)
