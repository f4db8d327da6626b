"""Predictor: a finished run or a saved estimator, ready to answer for new data."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sacm.backbones.base import Backbone
from sacm.data.load import names_file, resolve
from sacm.data.scaling import ChannelScaler, fill_gaps
from sacm.errors import ArgumentError, SACMError, SACMWarning
from sacm.files import write_json, write_weights
from sacm.settings import ResolvedSettings
from sacm.strategies.base import Strategy
from sacm.tasks import Result
from sacm.tasks.base import EVALUATION_BATCH, Calibration, NetworkShape, Trained
from sacm.tasks.calibration import MAX_REPAIRED, ErrorQuantiles
from sacm.training.run import CALIBRATION_FILE, Run, write_fingerprint

Array = NDArray[Any]


class Answer(NamedTuple):
    """Predictions as a table."""

    frame: Any  # pandas; a row a step ahead, a case, or a row that was scored
    notes: tuple[str, ...] = ()  # what was found in the data or done to them, a sentence each
    understood: tuple[str, ...] = ()  # how the data were read, a sentence each
    forecast: Any = None  # the forecast with its history; None for other tasks
    values: Any = None  # anomaly detection: a pandas frame of the rows that were scored


@dataclass(frozen=True, eq=False)
class Predictor:
    """A trained network for new data; arrays are rows `[T, C]`, or cases `[N, C, L]` to classify.

    Raw units in, raw units out. Several threads may share one predictor: no method changes it.

    Attributes:
        network: The network, in evaluation mode.
        settings: What it was trained with.
        shape: What it takes and gives.
        strategy: How it was trained; some strategies repair the inputs of a trained network too.
        scaler: Mean and deviation of every channel of the training rows, or of each series.
        calibration: What intervals and thresholds are made from; None for classification.

    Example:
        >>> predictor = sacm.Predictor.load("runs/NAME")  # doctest: +SKIP
        >>> predictor.predict(frame)  # doctest: +SKIP
    """

    network: Backbone
    settings: ResolvedSettings
    shape: NetworkShape
    strategy: Strategy
    scaler: ChannelScaler
    calibration: Calibration | None = None

    def __post_init__(self) -> None:
        self.network.eval()

    @classmethod
    def load(cls, source: str | Path | Run) -> Self:
        """Load a finished run or a saved estimator by its folder; training data are not needed."""
        run = source if isinstance(source, Run) else Run.load(source)
        parts = run.load_model(), run.settings, run.shape, run.strategy, run.scaler
        predictor = cls(*parts, run.calibration)
        run.check_unchanged()  # damaged files have been refused by now, each in its own words
        return predictor

    def save(self, folder: Path) -> None:
        """Write what `load` needs into a folder."""
        write_json(folder / "config.json", self.settings.model_dump())
        write_json(folder / "model.json", asdict(self.shape))
        write_json(folder / "scaler.json", self.scaler.to_dict())
        write_weights(folder / "best.safetensors", self.network.state_dict())
        if self.calibration is not None:
            tensors, text = self.calibration
            write_weights(folder / CALIBRATION_FILE, tensors, metadata=text)
        self.strategy.save(folder)
        write_fingerprint(folder)

    def predict(
        self,
        data: Any,
        *,
        intervals: Sequence[float] = (),
        quantiles: Sequence[float] = (),
        horizon: int | None = None,
        max_repaired: float = MAX_REPAIRED,
    ) -> Any:
        """Predict for new data.

        Args:
            data: A pandas frame, a file, the name of a data set, or an array or tensor: rows
                `[T, C]`, windows `[B, L, C]` to forecast, cases `[N, C, L]` to classify. Columns
                are found by name; rows after the last value hold known-future covariates.
            intervals: Forecasting: shares of future values to enclose; each adds columns such as
                `load_lower_80` and `load_upper_80`.
            quantiles: Forecasting: levels; each adds a column such as `load_q90`.
            horizon: Forecasting: steps; more than trained for are forecast from forecasts.
            max_repaired: Forecasting: share of a window that may have been repaired or missing.

        Returns:
            Forecasting: what follows, in the form of the data, `[H, C]` for rows and `[B, H, C]`
            for windows; a pandas frame for arrays with intervals. Classification: the label of
            every case. Anomaly detection: a pandas frame with `score` and `alarm` of every row.
        """
        options = {"horizon": horizon, "max_repaired": max_repaired}
        return self._ask("predict", data, intervals=intervals, quantiles=quantiles, **options)

    def tabulate(self, data: Any, **options: Any) -> Answer:
        """Predict, with the options of `predict`, as a pandas frame with notes on the data."""
        answer: Answer = self._ask("tabulate", data, **options)
        return answer

    def evaluate(self, data: Any) -> Result:
        """Test on the test part of a data set, or on all of a file, a frame or an array.

        Every window of a series is forecast; cases need their classes, rows a column of labels.
        What was not measured does not count.
        """
        result: Result = self._ask("evaluate", data)
        return result

    def _ask(self, question: str, data: Any, **options: Any) -> Any:
        """Call the function `predict`, `tabulate` or `evaluate` of the task."""
        from sacm.inference import classify, detect, forecast

        task = self.settings.task
        if task != "forecasting":
            for name, value in options.items():
                if value and name != "max_repaired":
                    raise ArgumentError(f"{name}: {task} has no use for it.")
            options = {}
        if isinstance(data, str) and not names_file(data):
            data = resolve(data, task=task, reading=self.settings.covariates())
        modules = {"forecasting": forecast, "classification": classify, "anomaly": detect}
        return getattr(modules[task], question)(self, data, **options)

    def run(self, x: Tensor, *others: Tensor | None) -> Tensor:
        """Repair scaled windows `[B, L, C]` (NaN in gaps) and run the network with `others`."""
        device = next(self.network.parameters()).device
        if x.isnan().any() and self.strategy.flags(x[:1]) is None:  # nothing repairs them
            x = torch.stack([torch.from_numpy(fill_gaps(each.numpy())) for each in x.cpu()])
        answers = []
        with torch.inference_mode():
            for start in range(0, len(x), EVALUATION_BATCH):
                rows = slice(start, start + EVALUATION_BATCH)
                beside = [None if other is None else other[rows].to(device) for other in others]
                inputs = self.strategy.inputs(x[rows].to(device))
                answers.append(self.network(inputs, *beside).float())
            return torch.cat(answers).cpu()

    @property
    def trained(self) -> Trained:
        """The network with its settings and its strategy."""
        return Trained(self.network, self.settings, self.strategy)

    @property
    def threshold(self) -> float | None:
        """Anomaly detection: the score from which a row is an alarm."""
        text = {} if self.calibration is None else self.calibration.text
        return float(text["threshold"]) if "threshold" in text else None

    @cached_property
    def errors(self) -> ErrorQuantiles:
        """Forecasting: the quantiles of its errors."""
        assert self.calibration is not None
        return ErrorQuantiles.from_record(self.calibration)

    def check_channels(self, channels: int, name: str) -> None:
        """Refuse data with another number of channels than the training data."""
        if channels != self.shape.channels:
            trained = f"the network was trained on {self.shape.channels} channels"
            raise ArgumentError(f"{trained} but {name} has {channels}.")


def warn(notes: Iterable[str]) -> None:
    """Give each note on the data as a warning."""
    for note in notes:
        warnings.warn(note, SACMWarning, stacklevel=3)


def as_tensor(values: Array | Tensor) -> Tensor:
    """Numbers as a float32 tensor without gradients."""
    if isinstance(values, Tensor):
        return values.detach().float()
    return torch.from_numpy(np.array(values, dtype=np.float32))  # a copy: `values` may be read-only


def check_finite(answers: Tensor, sentence: str) -> None:
    """Refuse answers `[B, …]` that are not finite; `sentence` has a place for the number."""
    if not torch.isfinite(answers).all():
        failed = int((~answers.isfinite()).flatten(1).any(dim=1).nonzero()[0])
        raise SACMError(f"{sentence.format(failed + 1)}: look for missing or extreme values in it.")
