"""A trained network as one file for other programs: raw units in, raw units out.

Scaling, repair and un-scaling are part of the graph, so a program that feeds it needs no part of
this package.
"""

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
from sacm.errors import ArgumentError, SACMError
from sacm.files import write_atomically, write_json
from sacm.inference.predictor import Array, Predictor

_CLOSE = 1e-3  # of the spread of the answers: other runtimes add up in another order
_OUTPUTS = {"forecasting": "forecast", "classification": "probabilities", "anomaly": "scores"}


class RawUnits(nn.Module):
    """The network between scaling, repair and un-scaling.

    Windows `[B, L, C]` in raw units to forecasts `[B, H, C]` in raw units, probabilities `[B, K]`
    or anomaly scores `[B, L]`. `names` lists what it takes: windows, calendar features where the
    network has some, and the place `[B]` of the series where every series has its own scale.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, predictor: Predictor) -> None:
        super().__init__()
        self.network, self.strategy = predictor.network, predictor.strategy
        self.task, self.score = predictor.settings.task, predictor.settings.score
        self.register_buffer("mean", torch.from_numpy(predictor.scaler.mean))
        self.register_buffer("std", torch.from_numpy(predictor.scaler.std))
        calendar = predictor.shape.calendar_sizes is not None
        taken = {"window": True, "stamps": calendar, "series": bool(predictor.scaler.series)}
        self.names = [name for name in taken if taken[name]]

    # Exporters want a parameter for each input that may stand beside the window.
    def forward(
        self, window: Tensor, second: Tensor | None = None, third: Tensor | None = None
    ) -> Tensor:
        """Answer for raw windows, with what else `names` lists, in its order."""
        given = [other for other in (second, third) if other is not None]
        beside = dict(zip(self.names[1:], given, strict=True))
        mean, std = self.mean, self.std
        if "series" in beside:
            mean, std = mean[beside["series"]][:, None], std[beside["series"]][:, None]
        scaled = self.strategy.inputs((window - mean) / std)
        if self.task == "anomaly":
            assert isinstance(self.network, DetectorNetwork)
            return self.network.anomaly_scores(scaled, score=self.score)
        stamps = [beside["stamps"]] if "stamps" in beside else []
        answer: Tensor = self.network(scaled, *stamps)
        return answer.softmax(dim=1) if self.task == "classification" else answer * std + mean


def export(predictor: Predictor, path: Path, to: str) -> Path:
    """Write a network as a file, compare its answers with ours, and write a description beside it.

    Args:
        predictor: The network, on the CPU.
        path: The file; `.onnx` or `.pt2`.
        to: "onnx", or "torch" for `torch.export`.

    Returns:
        The description, a JSON file beside it: inputs, outputs, channels, and an example.

    Raises:
        ArgumentError: A package is missing.
        SACMError: The network cannot be exported, or the file answers differently.
    """
    if predictor.shape.covariates is not None:
        raise SACMError("a network with covariates cannot be exported: its input is no window.")
    for name in ("onnxscript", "onnxruntime") if to == "onnx" else ():  # one exports, one checks
        if find_spec(name) is None:
            raise ArgumentError(f"export to ONNX needs {name}: pip install 'sacm[export]'.")
    settings, shape, scaler = predictor.settings, predictor.shape, predictor.scaler
    module = RawUnits(predictor).eval()
    # Two raw windows of noise in the units of the first and the last series.
    places = np.array([0, max(0, len(scaler.series) - 1)])
    noise = np.random.default_rng(0).normal(size=(2, shape.input_len, shape.channels))
    units = scaler.of_places(places)
    examples = {
        "window": torch.from_numpy(noise * units.std + units.mean).float(),
        "stamps": torch.zeros(2, shape.input_len + shape.horizon, 4),
        "series": torch.from_numpy(places),
    }
    inputs = tuple(examples[name] for name in module.names)
    with torch.inference_mode():
        expected = module(*inputs).numpy()
    try:
        write_atomically(path, lambda file: _write(module, inputs, file, to))
    except Exception as error:  # exporters have a dozen kinds of their own
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error)
        what = f"{settings.backbone} with {settings.strategy}"
        raise SACMError(f"{what} cannot be exported to {to}: {reason}") from None
    spread = float(np.abs(expected - expected.mean()).max()) or 1.0
    difference = float(np.abs(answer_of(path, to, inputs) - expected).max())
    if not difference <= _CLOSE * spread:
        path.unlink()
        raise SACMError(
            f"the exported file answers differently by {difference:.3g}, so it was removed."
        )
    record = {
        "task": settings.task,
        "inputs": {name: ["batch", *examples[name].shape[1:]] for name in module.names},
        "output": {_OUTPUTS[settings.task]: ["batch", *expected.shape[1:]]},
        "channels": shape.columns,
        "frequency": shape.frequency,
        "classes": list(shape.classes),
        "series": list(scaler.series),  # the input `series` is a place in this list
        "threshold": predictor.threshold,
        "example": {"window": inputs[0][0].tolist(), "answer": expected[0].tolist()},
    }
    described = path.with_name(f"{path.name}.json")
    write_json(described, record)
    return described


def answer_of(path: Path, to: str, inputs: tuple[Tensor, ...]) -> Array:
    """Answers of the exported file to `inputs`."""
    answer: Array
    if to == "torch":
        with torch.inference_mode():
            answer = torch.export.load(path).module()(*inputs).numpy()
        return answer
    from onnxruntime import InferenceSession

    session = InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]
    answer = session.run(None, {n: x.numpy() for n, x in zip(names, inputs, strict=True)})[0]
    return answer


def _write(module: RawUnits, inputs: tuple[Tensor, ...], path: Path, to: str) -> None:
    """Export for batches of any size."""
    batch = torch.export.Dim("batch", min=1, max=4096)
    sizes: Any = {"dynamic_shapes": tuple({0: batch} for _ in inputs)}
    # Exporters give advice to their developers, and name optional packages that are missing.
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if to == "torch":
            with path.open("wb") as file:  # the name of a temporary file is no .pt2
                torch.export.save(torch.export.export(module, inputs, **sizes), file)
            return
        named: Any = {"input_names": module.names, "output_names": [_OUTPUTS[str(module.task)]]}
        program: Any = torch.onnx.export(
            module, inputs, dynamo=True, verbose=False, **named, **sizes
        )
        program.save(str(path), external_data=False)
