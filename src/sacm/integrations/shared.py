"""What the integrations share: the network and its window, and repaired frames."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from torch import nn

from sacm.core.config import SACMConfig
from sacm.errors import ArgumentError
from sacm.inject.attach import attach
from sacm.inject.modulator import CapacityModulator
from sacm.inject.sites import MODULATOR
from sacm.inject.window import InputArg, WindowLayout
from sacm.quality.inspect import inspect

if TYPE_CHECKING:
    import pandas as pd


Coverage = Literal["modules", "all"]


class WindowedNetwork(NamedTuple):
    """A network inside another library's model, and its window, as `sacm.attach` takes them."""

    model: nn.Module
    channels: int | None = None
    input_arg: InputArg = 0
    window_layout: WindowLayout = "BLC"

    def attach(self, config: SACMConfig | None, coverage: Coverage) -> CapacityModulator:
        """Attach to the network."""
        return attach(**self._asdict(), config=config, coverage=coverage)


def modulator_of(model: nn.Module) -> CapacityModulator | None:
    """Return the modulator of a model that is attached already."""
    modulator = getattr(model, MODULATOR, None)
    return modulator if isinstance(modulator, CapacityModulator) else None


def check_optimizers(modulator: CapacityModulator, optimizers: Iterable[Any]) -> None:
    """Refuse optimizers that were made too early to hold the modulator's scalars."""
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    held = {id(parameter) for group in groups for parameter in group["params"]}
    if any(id(scalar) not in held for scalar in modulator.parameters()):
        raise ArgumentError(
            "the optimizer does not hold SACM's scalars: it was made before the model was attached "
            "or from some of its parameters; make it from model.parameters() after attaching."
        )


def repair_frame(
    frame: pd.DataFrame,
    *,
    id_col: str = "unique_id",
    time_col: str = "ds",
    target_col: str = "y",
    mask_col: str = "available_mask",
) -> pd.DataFrame:
    """Return a repaired long frame that marks what was broken, so that no loss counts it.

    NeuralForecast reads the marks from the column `available_mask` by itself. For
    pytorch-forecasting name the column with `weight=` of its `TimeSeriesDataSet`.

    Args:
        frame: One row for each series (`id_col`) and time (`time_col`).
        id_col: The column that names the series.
        time_col: The column of times.
        target_col: The column to judge and repair.
        mask_col: The column to add: 1 where a value was normal and 0 where not.
    """
    columns = {id_col: "unique_id", time_col: "ds", target_col: "y"}
    present = list(getattr(frame, "columns", ()))
    if not hasattr(frame, "iloc") or not set(columns) <= set(present):
        raise ArgumentError(
            f"repair_frame needs a pandas frame with the columns {', '.join(columns)}; got "
            f"{type(frame).__name__} with {', '.join(map(str, present)) or 'none'}."
        )
    quality = inspect(frame[list(columns)].rename(columns=columns).reset_index(drop=True))
    marks = quality.recording.restore(np.full(quality.values.shape, np.nan), quality.changed)
    repaired = quality.repaired["y"].to_numpy() if quality.changed.any() else frame[target_col]
    normal = marks["y"].notna().to_numpy(np.float64)
    return frame.assign(**{target_col: repaired, mask_col: normal})
