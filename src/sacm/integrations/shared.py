"""What the integrations share: the network and its window, scalars in files, repaired frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from torch import Tensor, nn

from sacm.core.config import SACMConfig
from sacm.errors import ArgumentError
from sacm.files import read_weights, write_weights
from sacm.inject.attach import attach
from sacm.inject.modulator import CapacityModulator
from sacm.inject.sites import MODULATOR
from sacm.inject.window import InputArg, WindowLayout
from sacm.quality.inspect import inspect
from sacm.quality.protect import protect, unprotect

if TYPE_CHECKING:
    import pandas as pd

FILE = "sacm_scalars.safetensors"


class WindowedNetwork(NamedTuple):
    """A network inside another library's model, and its window, as `sacm.attach` takes them."""

    network: nn.Module
    channels: int | None = None
    input_arg: InputArg = 0
    window_layout: WindowLayout = "BLC"

    def attach(
        self, config: SACMConfig | None, coverage: Literal["modules", "all"]
    ) -> CapacityModulator:
        """Attach to the network."""
        return attach(
            self.network,
            channels=self.channels,
            config=config,
            input_arg=self.input_arg,
            window_layout=self.window_layout,
            coverage=coverage,
        )

    def protect(self, guard: Any) -> None:
        """Make the network repair its windows; one that does so already gets the new guard."""
        network, layout = unprotect(self.network), self.window_layout
        protect(network, guard, input_arg=self.input_arg, window_layout=layout)


def modulator_of(model: nn.Module) -> CapacityModulator | None:
    """Return the modulator of a model that is attached already."""
    modulator = getattr(model, MODULATOR, None)
    return modulator if isinstance(modulator, CapacityModulator) else None


def check_optimizers(modulator: CapacityModulator, optimizers: Iterable[Any]) -> None:
    """Refuse optimizers that were made too early to hold the modulator's scalars."""
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    held = {id(parameter) for group in groups for parameter in group["params"]}
    lacking = [name for name, scalar in modulator.named_parameters() if id(scalar) not in held]
    if lacking:
        raise ArgumentError(
            f"the optimizer does not hold SACM's {', '.join(lacking)}: it was made before the "
            "model was attached, or from some of its parameters only; make it from "
            "model.parameters() after attaching."
        )


def save_scalars(model: nn.Module, folder: str | Path) -> Path:
    """Write the scalars of an attached model to `sacm_scalars.safetensors` in a folder.

    For libraries whose own files leave them out. The folder is made if it does not exist.
    """
    path = Path(folder) / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    write_weights(path, _require_modulator(model).state_dict())
    return path


def load_scalars(model: nn.Module, folder: str | Path) -> None:
    """Read what `save_scalars` wrote into a model attached with the same number of channels.

    Raises:
        ArgumentError: The model is not attached, or has other channels.
        SACMError: There is no such file, or it is damaged.
    """
    put_scalars(_require_modulator(model), read_weights(Path(folder) / FILE), str(folder))


def _require_modulator(model: nn.Module) -> CapacityModulator:
    modulator = modulator_of(model)
    if modulator is None:
        raise ArgumentError(f"{type(model).__name__} is not attached: call sacm.attach first.")
    return modulator


def put_scalars(modulator: CapacityModulator, scalars: Mapping[str, Tensor], where: str) -> None:
    """Give a modulator its scalars, from a file of their own or from a whole model's state dict."""
    stored = {key.partition(f"{MODULATOR}.")[2] or key: value for key, value in scalars.items()}
    needed = modulator.state_dict()
    unfit = [key for key, value in needed.items() if stored.get(key, Tensor()).shape != value.shape]
    if unfit:
        raise ArgumentError(
            f"{where} holds no {', '.join(unfit)} for a model with {modulator.window.channels} "
            "channels: it was written by another model, or without SACM."
        )
    modulator.load_state_dict({key: stored[key] for key in needed})


def repair_frame(
    frame: pd.DataFrame,
    *,
    id_col: str = "unique_id",
    time_col: str = "ds",
    target_col: str = "y",
    mask_col: str = "available_mask",
) -> pd.DataFrame:
    """Repair a long frame, and mark what was broken so that it does not count in the loss.

    NeuralForecast reads the marks from the column `available_mask` by itself. For
    pytorch-forecasting name the column with `weight=` of its `TimeSeriesDataSet`.

    Args:
        frame: One row for each series (`id_col`) and time (`time_col`).
        id_col: The column that names the series.
        time_col: The column of times.
        target_col: The column to judge and repair.
        mask_col: The column to add: 1 where a value was normal and 0 where not.

    Returns:
        A copy with repaired values.
    """
    columns = {id_col: "unique_id", time_col: "ds", target_col: "y"}
    present = list(getattr(frame, "columns", ()))
    lacking = [name for name in columns if name not in present]
    if lacking or not hasattr(frame, "iloc"):
        raise ArgumentError(
            f"repair_frame needs a pandas frame with the columns {', '.join(columns)}; got "
            f"{type(frame).__name__} with {', '.join(map(str, present)) or 'none'}."
        )
    quality = inspect(frame[list(columns)].rename(columns=columns).reset_index(drop=True))
    marks = quality.recording.restore(np.full(quality.values.shape, np.nan), quality.changed)
    mended = frame.copy()
    if quality.changed.any():
        mended[target_col] = quality.repaired["y"].to_numpy()
    mended[mask_col] = marks["y"].notna().to_numpy(np.float64)
    return mended
