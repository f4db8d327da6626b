"""A saved estimator: the folder of a run with two more files.

config.json, model.json, scaler.json, best.safetensors: as in every run folder.
estimator.json: kind, parameters, and what else is plain.
kept.safetensors: tensors of the estimator's own, if it has any.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from sacm.errors import ArgumentError
from sacm.files import read_json, read_weights, write_json, write_weights
from sacm.inference.predictor import ESTIMATOR_FILE
from sacm.inference.trained import TrainedNetwork

_RECORD, _TENSORS = ESTIMATOR_FILE, "kept.safetensors"


@dataclass(frozen=True)
class Saved:
    """What an estimator is apart from its network."""

    kind: str
    parameters: dict[str, Any]
    values: dict[str, Any]
    tensors: dict[str, Tensor]


def write_saved(path: Path, saved: Saved, trained: TrainedNetwork) -> None:
    """Write the folder beside its place, then move it there; an older save is replaced."""
    check_plain(saved.parameters)
    if path.exists() and not (path / _RECORD).is_file():
        raise ArgumentError(f"{path} exists and is no saved estimator: choose another place.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp"))
    except OSError as error:
        raise ArgumentError(f"{path} cannot be written ({error.strerror}).") from error
    try:
        fresh = temporary / "new"
        write_json(fresh / "config.json", trained.settings.model_dump())
        write_json(fresh / "model.json", trained.shape.to_dict())
        write_json(fresh / "scaler.json", trained.scaler.to_dict())
        write_weights(fresh / "best.safetensors", trained.network.state_dict())
        trained.strategy.save(fresh)
        if saved.tensors:
            write_weights(fresh / _TENSORS, saved.tensors)
        record = {"kind": saved.kind, "parameters": saved.parameters, "values": saved.values}
        write_json(fresh / _RECORD, record)
        if path.exists():
            path.rename(temporary / "old")
        fresh.rename(path)
    finally:
        shutil.rmtree(temporary)


def read_saved(path: Path) -> Saved:
    """What `write_saved` wrote, but for what belongs to the run."""
    if not (path / _RECORD).is_file():
        raise ArgumentError(f"{path} is not a saved estimator: it holds no {_RECORD}.")
    record = read_json(path / _RECORD)
    tensors = read_weights(path / _TENSORS) if (path / _TENSORS).exists() else {}
    try:
        return Saved(**record, tensors=tensors)
    except TypeError:
        raise ArgumentError(f"{path / _RECORD} is damaged: save the estimator again.") from None


def check_plain(parameters: Mapping[str, Any]) -> None:
    """Refuse parameters that JSON cannot hold."""
    for name, value in parameters.items():
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError):
            raise ArgumentError(f"the parameter {name}={value!r} cannot be saved.") from None


def to_json_value(value: Any) -> Any:
    """A parameter as JSON can hold it."""
    if isinstance(value, Mapping):
        return {key: to_json_value(inner) for key, inner in value.items()}
    if isinstance(value, Path):
        return str(value)
    return value.tolist() if hasattr(value, "tolist") else value  # NumPy, pandas
