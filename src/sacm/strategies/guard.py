"""Learn from repaired data, and repair what is predicted from."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from sacm.errors import ArgumentError, SACMWarning
from sacm.strategies.base import Prepared, Strategy
from sacm.strategies.registry import register

if TYPE_CHECKING:
    from sacm.quality.guard import Guard
    from sacm.quality.windows.module import WindowGuard

_TARGETS = ("weigh", "drop", "keep")
_FEW_ROWS = (
    "There are too few training rows to learn what windows look like: before a forecast only "
    "missing, repeated and wild values are repaired."
)
_GUARD, _WINDOWS = "guard.safetensors", "window_guard.safetensors"


@register("guard")
@dataclass(frozen=True)
class GuardStrategy(Strategy):
    """Find broken values and repair them before training; repair inputs at prediction as well.

    sensitivity: 1 keeps false flags on healthy series below 1 %; larger values flag more.
    targets: What a repaired target counts in the loss: its reliability (weigh), 0 (drop), 1 (keep).
    """

    sensitivity: float = 1.0
    targets: str = "weigh"

    def __post_init__(self) -> None:
        if not self.sensitivity > 0:
            raise ArgumentError(f"guard(sensitivity=…) must be positive, got {self.sensitivity}.")
        if self.targets not in _TARGETS:
            raise ArgumentError(
                f"guard(targets=…) must be {', '.join(_TARGETS)}, got {self.targets!r}."
            )

    def prepare(self, data: Any, *, window: int) -> Prepared:
        """Fit a guard on the training part and repair what is learnt from."""
        from sacm.quality.guard import Guard
        from sacm.quality.prepare import repair_for_training

        guard = Guard(self.sensitivity, window=None).fit(data)
        repaired = repair_for_training(data, guard, targets=self.targets)  # type: ignore[arg-type]  # checked above
        module = fit_windows(repaired.data, data, window, self.sensitivity)
        notes = []
        if repaired.share:
            share = f"{repaired.share:.2%}"
            notes.append(f"{share} of the training values look broken and were repaired.")
        if module is not None and module.spikes is None:
            notes.append(_FEW_ROWS)
        fitted = FittedGuard(self.sensitivity, self.targets, guard, module)
        filled = super().prepare(repaired.data, window=window)
        return Prepared(filled.data, fitted, (*notes, *filled.notes))

    def load(self, folder: Path) -> Strategy:
        """The strategy as a run has fitted it."""
        from sacm.files import read_metadata, read_weights
        from sacm.quality.guard import Guard, other_version_error
        from sacm.quality.windows.module import WindowGuard

        guard = Guard.load(folder / _GUARD)
        path = folder / _WINDOWS
        module = None
        if path.exists():
            tensors, text = read_weights(path), read_metadata(path)
            try:
                module = WindowGuard.load(json.loads(text["config"]), tensors).eval()
            except (KeyError, TypeError, ValueError, ArgumentError):
                raise other_version_error(path) from None
        return FittedGuard(self.sensitivity, self.targets, guard, module)


@dataclass(frozen=True)
class FittedGuard(GuardStrategy):
    """The strategy with what it learnt from training rows.

    Attributes:
        guard: For tables.
        module: For z-scored windows of forecasting; None for other tasks and very short series.
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
        if self.module is None or training:
            return x
        repaired: Tensor = self.module.to(x.device)(x)
        return repaired

    def flags(self, x: Tensor) -> Tensor | None:
        """Kinds `[B, L, C]` (uint8) of what `inputs` repairs in windows `[B, L, C]`."""
        return None if self.module is None else self.module.inspect(x).flags

    def save(self, folder: Path) -> None:
        """Write what was learnt into the folder of the run."""
        from sacm.files import write_weights

        if self.guard is not None:
            self.guard.save(folder / _GUARD)
        if self.module is not None:
            text = json.dumps(self.module.config())
            write_weights(folder / _WINDOWS, self.module.state_dict(), metadata={"config": text})


def fit_windows(data: Any, before: Any, window: int, sensitivity: float) -> WindowGuard | None:
    """A guard of z-scored windows, for the inputs of forecasts.

    Args:
        data: The data set with repaired training rows.
        before: The same before it was repaired.
        window: Steps of a window.
        sensitivity: As for the strategy.
    """
    from sacm.data.datasets import ForecastingData
    from sacm.data.scaling import scale_training_rows
    from sacm.quality.windows.fit import fit_window_guard
    from sacm.quality.windows.training_rows import SHORTEST_WINDOW

    if not isinstance(data, ForecastingData) or window < SHORTEST_WINDOW:
        return None
    pieces = [rows for rows in data.ranges("train") if len(rows) >= window]
    if not pieces or max(map(len, pieces)) < 2 * window:
        return None
    rows = scale_training_rows(data, pieces)
    earlier = scale_training_rows(data, pieces, values=before.values)
    with warnings.catch_warnings():  # few rows are said in a note
        warnings.simplefilter("ignore", SACMWarning)
        return fit_window_guard(
            rows, window, sensitivity=sensitivity, pieces=pieces, before=earlier
        )
