"""The scalars of a modulator in a file of their own, where a library's own files leave them out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor, nn

from sacm.errors import ArgumentError
from sacm.files import read_weights, write_weights
from sacm.inject.modulator import CapacityModulator
from sacm.inject.state import MODULATOR
from sacm.integrations.attached import modulator_of

FILE = "sacm_scalars.safetensors"


def save_scalars(model: nn.Module, folder: str | Path) -> Path:
    """Write the scalars of an attached model to `sacm_scalars.safetensors` in a folder.

    Args:
        model: An attached model.
        folder: Where; it is made if it does not exist.

    Returns:
        The file.

    Raises:
        ArgumentError: The model is not attached.
    """
    path = Path(folder) / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    write_weights(path, _modulator(model).state_dict())
    return path


def load_scalars(model: nn.Module, folder: str | Path) -> None:
    """Read what `save_scalars` wrote into an attached model.

    Args:
        model: A model attached with the same number of channels.
        folder: The folder that holds the file.

    Raises:
        ArgumentError: The model is not attached, or has other channels.
        SACMError: There is no such file, or it is damaged.
    """
    put_scalars(_modulator(model), read_weights(Path(folder) / FILE), str(folder))


def put_scalars(modulator: CapacityModulator, scalars: Mapping[str, Tensor], where: str) -> None:
    """Give a modulator its scalars, from a file of their own or from a whole model's state dict."""
    mark = f"{MODULATOR}."
    found = {key.partition(mark)[2] or key: value for key, value in scalars.items()}
    own = modulator.state_dict()
    unfit = [key for key, value in own.items() if found.get(key, Tensor()).shape != value.shape]
    if unfit:
        raise ArgumentError(
            f"{where} holds no {', '.join(unfit)} for a model with {modulator.window.channels} "
            "channels: it was written by another model, or without SACM."
        )
    modulator.load_state_dict({key: found[key] for key in own})


def _modulator(model: nn.Module) -> CapacityModulator:
    """Return the modulator of an attached model."""
    found = modulator_of(model)
    if found is None:
        raise ArgumentError(f"{type(model).__name__} is not attached: call sacm.attach first.")
    return found
