"""A trained network as one file for other programs, with scaling, repair and un-scaling in it."""

from __future__ import annotations

import logging
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sacm.backbones.base import DetectorNetwork
from sacm.backbones.statistical import SmoothingForecaster
from sacm.errors import ArgumentError, SACMError
from sacm.files import write_atomically, write_json
from sacm.inference.predictor import Array, Predictor

_CLOSE = 1e-3  # of the spread of the answers: other runtimes add up in another order
_OUTPUTS = {"forecasting": "forecast", "classification": "probabilities", "anomaly": "scores"}


class RawUnits(nn.Module):
    """The network for raw windows: forecasts `[B, H, C]` are raw too; or scores, probabilities."""

    mean: Tensor
    std: Tensor

    def __init__(self, predictor: Predictor) -> None:
        super().__init__()
        self.network, self.strategy = predictor.network, predictor.strategy
        self.task, self.score = predictor.settings.task, predictor.settings.score
        self.register_buffer("mean", torch.from_numpy(predictor.scaler.mean))
        self.register_buffer("std", torch.from_numpy(predictor.scaler.std))

    def forward(self, window: Tensor, stamps: Tensor | None = None) -> Tensor:
        """Answer for raw windows and, where the network has a calendar, stamps `[B, L + H, 4]`."""
        scaled = self.strategy.inputs((window - self.mean) / self.std)
        if self.task == "anomaly":
            assert isinstance(self.network, DetectorNetwork)
            return self.network.anomaly_scores(scaled, score=self.score)
        answer: Tensor = self.network(scaled, *(() if stamps is None else (stamps,)))
        if self.task == "classification":
            return answer.softmax(dim=1)
        return answer * self.std + self.mean


def export(predictor: Predictor, path: Path, to: str) -> Path:
    """Write a network as a file `to` "onnx" or "torch" (`torch.export`), if its answers are ours.

    Returns:
        A JSON file beside it that describes inputs, outputs and channels, with an example.
    """
    if predictor.shape.covariates is not None:
        raise SACMError("a network with covariates cannot be exported: its input is no window.")
    if predictor.scaler.series:
        raise SACMError("every series has its own scale: train with --scaling shared to export.")
    for name in ("onnxscript", "onnxruntime") if to == "onnx" else ():  # one exports, one checks
        if find_spec(name) is None:
            raise ArgumentError(f"export to ONNX needs {name}: pip install 'sacm[export]'.")
    settings, shape, scaler = predictor.settings, predictor.shape, predictor.scaler
    if any(isinstance(part, SmoothingForecaster) for part in predictor.network.modules()):
        raise ArgumentError(
            "the run contains smoothing or Theta, which are fitted in every window: their graph "
            "is too long to export. Train one network, such as --backbone PatchTST."
        )
    module = RawUnits(predictor).eval()
    noise = np.random.default_rng(0).normal(size=(2, shape.input_len, shape.channels))
    inputs = {"window": torch.from_numpy(scaler.inverse(noise)).float()}
    if shape.calendar_sizes is not None:
        inputs["stamps"] = torch.zeros(2, shape.input_len + shape.horizon, 4)
    with torch.inference_mode():
        expected = module(**inputs).numpy()
    try:
        write_atomically(path, lambda file: _write(module, inputs, file, to))
    except Exception as error:  # exporters have a dozen kinds of their own
        reason = next(iter(str(error).strip().splitlines()), type(error))
        what = f"{settings.backbone} with {settings.strategy}"
        raise SACMError(f"{what} cannot be exported to {to}: {reason}") from None
    spread = float(np.abs(expected - expected.mean()).max()) or 1.0
    difference = float(np.abs(_answer(path, to, inputs) - expected).max())
    if not difference <= _CLOSE * spread:
        path.unlink()
        raise SACMError(f"the file answers differently by {difference:.3g}, so it was removed.")
    record = {
        "task": settings.task,
        "inputs": {name: ["batch", *x.shape[1:]] for name, x in inputs.items()},
        "output": {_OUTPUTS[settings.task]: ["batch", *expected.shape[1:]]},
        "channels": shape.columns,
        "frequency": shape.frequency,
        "classes": list(shape.classes),
        "threshold": predictor.threshold,
        "example": {"window": inputs["window"][0].tolist(), "answer": expected[0].tolist()},
    }
    described = path.with_name(f"{path.name}.json")
    write_json(described, record)
    return described


def _answer(path: Path, to: str, inputs: dict[str, Tensor]) -> Array:
    if to == "torch":
        with torch.inference_mode():
            return np.asarray(torch.export.load(path).module()(*inputs.values()))
    from onnxruntime import InferenceSession

    session = InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {name: x.numpy() for name, x in inputs.items()})[0])


def _write(module: RawUnits, inputs: dict[str, Tensor], path: Path, to: str) -> None:
    """Export for batches of any size."""
    batch = torch.export.Dim("batch", min=1, max=4096)
    given, sizes = tuple(inputs.values()), tuple({0: batch} for _ in inputs)
    # Exporters give advice to their developers, and name optional packages that are missing.
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if to == "torch":
            with path.open("wb") as file:  # the name of a temporary file is no .pt2
                torch.export.save(torch.export.export(module, given, dynamic_shapes=sizes), file)
            return
        named: Any = {"input_names": [*inputs], "output_names": [_OUTPUTS[str(module.task)]]}
        named |= {"dynamo": True, "verbose": False, "dynamic_shapes": sizes}
        program: Any = torch.onnx.export(module, given, **named)
        program.save(str(path), external_data=False)
