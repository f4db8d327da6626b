"""Predictor: a finished run or a saved estimator, ready to answer for new data.

Every prediction takes one path: scale, repair, run the network, scale back.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sacm.backbones.base import Backbone, DetectorNetwork
from sacm.data.covariates import ROLES, CovariatePlan
from sacm.data.scaling import ChannelScaler, fill_gaps
from sacm.errors import ArgumentError, DataError, SACMError, SACMWarning
from sacm.files import write_json, write_weights
from sacm.settings import ResolvedSettings
from sacm.strategies.base import Strategy
from sacm.tasks import Result
from sacm.tasks.base import EVALUATION_BATCH, Calibration, NetworkShape, Trained
from sacm.tasks.calibration import MAX_REPAIRED, ErrorQuantiles
from sacm.training.run import CALIBRATION_FILE, Run, write_fingerprint

Array = NDArray[Any]
Values = TypeVar("Values", Array, Tensor)


class Answer(NamedTuple):
    """Predictions as a table.

    Attributes:
        frame: A pandas frame. Forecasting: times or row numbers, and channels; classification:
            case, class and the probability of each class; anomaly detection: row, score, threshold
            and alarm.
        notes: What was found in the data or done to them, one sentence each.
        understood: How the data were read, one sentence each.
        forecast: The forecast with its history; None for other tasks.
        values: Anomaly detection: a pandas frame of the rows that were scored.
    """

    frame: Any
    notes: tuple[str, ...] = ()
    understood: tuple[str, ...] = ()
    forecast: Any = None
    values: Any = None


@dataclass(frozen=True, eq=False)
class Predictor:
    """A trained network for new data; arrays are rows `[T, C]` or windows `[B, L, C]`.

    Raw units in, raw units out. Several threads may share one predictor: no method changes it.
    Arrays need no pandas.

    Attributes:
        network: The network, in evaluation mode.
        settings: What it was trained with.
        shape: What it takes and gives.
        strategy: How it was trained; some strategies change the inputs of a trained network too.
        scaler: Mean and deviation of every channel of the training rows, of each series if they
            were scaled one by one.
        calibration: What intervals and thresholds are made from; None for classification.
        threshold: Anomaly detection: the score from which a row is an alarm.

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
    threshold: float | None = None

    def __post_init__(self) -> None:
        self.network.eval()

    @classmethod
    def load(cls, source: str | Path | Run) -> Self:
        """Load a finished run or a saved estimator; its training data are not needed.

        Args:
            source: The folder of either, or a `Run`.

        Raises:
            SACMError: The folder is neither, is not finished, or is damaged.
        """
        run = source if isinstance(source, Run) else Run.load(source)
        parts = run.load_model(), run.settings, run.shape, run.strategy, run.scaler
        predictor = cls(*parts, run.calibration, run.threshold)
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
            text = text if self.threshold is None else {**text, "threshold": repr(self.threshold)}
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
        future_data: Any = None,
        max_repaired: float = MAX_REPAIRED,
    ) -> Any:
        """Predict for new data.

        Args:
            data: A pandas or polars frame, a file, the name of a data set, or an array or tensor:
                rows `[T, C]`, or windows `[B, L, C]` that are answered one by one; for
                classification one case `[L, C]` or cases `[B, L, C]`. Columns are found by name, in
                any order; others are ignored.
            intervals: Forecasting: shares of future values to enclose; each adds columns such as
                `load_lower_80` and `load_upper_80`.
            quantiles: Forecasting: levels; each adds a column such as `load_q90`.
            horizon: Forecasting: steps. Default: those the network was trained for; more are
                forecast from the forecasts before them.
            future_data: Forecasting: a frame or file with the known-future covariates of the steps
                ahead. Not needed if the rows after the last value in `data` hold them.
            max_repaired: Forecasting: the share of a window's values that may have been repaired or
                missing.

        Returns:
            Forecasting: what follows, in the form of the data, `[H, C]` for rows and `[B, H, C]`
            for windows; a pandas frame for arrays with intervals. Classification: the label of
            every case. Anomaly detection: `score` and `alarm` of every row, as a frame, or as a
            pair of arrays for arrays.

        Raises:
            ArgumentError: The data have another number of channels or another shape.
            DataError: The data cannot be read, are too short, or too much of them is missing.
            SACMError: A prediction is not finite.
        """
        options = self._options(intervals, quantiles, horizon, future_data, max_repaired)
        return self._module.predict(self, self._find(data), **options)

    def tabulate(
        self,
        data: Any,
        *,
        intervals: Sequence[float] = (),
        quantiles: Sequence[float] = (),
        horizon: int | None = None,
        future_data: Any = None,
        max_repaired: float = MAX_REPAIRED,
    ) -> Answer:
        """Predict as `predict`, but always as a pandas frame, with notes on the data."""
        options = self._options(intervals, quantiles, horizon, future_data, max_repaired)
        answer: Answer = self._module.tabulate(self, self._find(data), **options)
        return answer

    def evaluate(self, data: Any) -> Result:
        """Test on the test part of a data set, or on all of other data.

        Args:
            data: A data set of the task, or the name of one: its test part. A file, a frame or an
                array: a series whose every window is forecast, cases with their classes, or rows
                with a column of labels.

        Returns:
            The measures and how many windows were seen. What was not measured does not count.

        Raises:
            DataError: The data have other columns, are too short, or lack labels.
        """
        result: Result = self._module.evaluate(self, self._find(data))
        return result

    @property
    def _module(self) -> Any:
        """The functions `predict`, `tabulate` and `evaluate` of the task."""
        from sacm.inference import classify, detect, forecast

        modules = {"forecasting": forecast, "classification": classify, "anomaly": detect}
        return modules[self.settings.task]

    def _find(self, data: Any) -> Any:
        """The data set that a name stands for; everything else as it is."""
        if isinstance(data, str) and not os.path.isfile(data):
            from sacm.data.load import names_file, resolve

            if not names_file(data):
                roles = {role: names for role in ROLES if (names := getattr(self.plan, role))}
                return resolve(data, task=self.settings.task, reading=roles)
        return data

    def _options(
        self, intervals: Any, quantiles: Any, horizon: Any, future_data: Any, max_repaired: float
    ) -> dict[str, Any]:
        """Options of forecasts, which other tasks refuse."""
        options = {"intervals": tuple(intervals), "quantiles": tuple(quantiles)}
        options |= {"horizon": horizon, "future_data": future_data}
        if self.settings.task == "forecasting":
            return {**options, "max_repaired": max_repaired}
        for name, value in options.items():
            if value is not None and not (isinstance(value, tuple) and not value):
                raise ArgumentError(f"{name}: {self.settings.task} has no use for it.")
        return {}

    def forecast(
        self,
        windows: Values,
        stamps: Values | None = None,
        covariates: Values | None = None,
        *,
        scaler: ChannelScaler | None = None,
        max_repaired: float = MAX_REPAIRED,
    ) -> Values:
        """Forecast what follows each window.

        Args:
            windows: `[B, L, C]` in raw units, an array or a tensor; NaN where nothing was measured.
            stamps: Calendar features `[B, L + H, 4]` of inputs and targets (see
                `sacm.data.stamp_features`), for networks that were trained with a calendar.
            covariates: `[B, L + H, K]` in raw units, for networks that were trained with some.
            scaler: What these windows are scaled by. Default: that of the network, or, if it has
                one for every series, each window's own rows, for an array names no series.
            max_repaired: The share of a window's values that may have been repaired or missing.

        Returns:
            `[B, H, C]` in raw units, of the kind and on the device of `windows`.

        Raises:
            DataError: Too much of a window was repaired or missing.
        """
        self._check_task("forecasting", "forecast")
        scaler = scaler or self._scaler_of_windows(windows)
        scaled = self.scale(windows, scaler)
        for place, share in enumerate(self.repaired(scaled).float().mean(dim=(1, 2)).tolist()):
            if share > max_repaired:
                raise refusal(f"window {place + 1}", share, max_repaired)
        answer = self.run_forecast(scaled, stamps, covariates)
        return like(torch.from_numpy(self.limit(scaler.inverse(answer).numpy())), windows)

    def run_forecast(self, scaled: Tensor, stamps: Any = None, covariates: Any = None) -> Tensor:
        """Forecast scaled windows `[B, L, C]`: `[B, H, C]`."""
        calendar = self.shape.calendar_sizes is not None
        if calendar and stamps is None:
            raise ArgumentError(
                "the data have no times, but the network was trained with calendar features."
            )
        if self.shape.covariates is not None and covariates is None:
            raise ArgumentError(
                "the network was trained with covariates: give the data as a table that has them."
            )
        beside: list[Tensor | None] = [as_tensor(stamps)] if calendar else []
        if covariates is not None:
            beside = [*(beside or [None]), as_tensor(covariates)]
        answer = self.run(self.network, scaled, *beside)
        check_finite(answer, "the forecast of window {} is not finite")
        return answer

    def limit(self, values: Array) -> Array:
        """Forecasts `[…, C]` in raw units, none below the minimum of its channel."""
        if self.shape.minimum is None:
            return values
        limits = [-np.inf if least is None else least for least in self.shape.minimum]
        limited: Array = np.maximum(values, np.array(limits, values.dtype))
        return limited

    def probabilities(self, windows: Values) -> Values:
        """The probability of each class `[B, K]`, in the order of `shape.classes`.

        Args:
            windows: Cases `[B, L, C]` in raw units, an array or a tensor.
        """
        from sacm.inference.classify import case_probabilities

        self._check_task("classification", "classify")
        self._check_windows(windows)
        cases = as_tensor(windows).cpu().numpy().transpose(0, 2, 1)  # [B, C, L]
        return like(torch.from_numpy(case_probabilities(self, cases)), windows)

    def window_scores(self, windows: Values) -> Values:
        """An anomaly score for each step of each window, `[B, L]`; higher is more anomalous.

        Args:
            windows: `[B, L, C]` in raw units, an array or a tensor.
        """
        self._check_task("anomaly", "score rows")
        network, kind = self.network, self.settings.score
        assert isinstance(network, DetectorNetwork)
        scores = self.run(lambda x: network.anomaly_scores(x, score=kind), self.scale(windows))
        check_finite(scores, "the anomaly score of window {} is not finite")
        return like(scores, windows)

    def run(self, network: Callable[..., Tensor], x: Tensor, *others: Tensor | None) -> Tensor:
        """Repair scaled windows and run the network, a batch at a time and without gradients.

        Args:
            network: The network or one of its methods.
            x: Scaled windows `[B, L, C]`, NaN where nothing was measured.
            others: Further arguments `[B, …]`, or None.
        """
        device = next(self.network.parameters()).device
        if x.isnan().any() and self.strategy.flags(x[:1]) is None:  # nothing repairs them
            x = torch.stack([torch.from_numpy(fill_gaps(each.numpy())) for each in x.cpu()])
        parts = []
        with torch.inference_mode():
            for start in range(0, len(x), EVALUATION_BATCH):
                rows = slice(start, start + EVALUATION_BATCH)
                beside = [None if other is None else other[rows].to(device) for other in others]
                parts.append(network(self.strategy.inputs(x[rows].to(device)), *beside).float())
            return (parts[0] if len(parts) == 1 else torch.cat(parts)).cpu()

    def repaired(self, x: Tensor) -> Tensor:
        """Where values of scaled windows `[B, L, C]` are missing or get repaired, bool."""
        flags = self.strategy.flags(x)
        missing = x.isnan()
        return missing if flags is None else missing | (flags.to(x.device) > 0)

    def scale(self, windows: Array | Tensor, scaler: ChannelScaler | None = None) -> Tensor:
        """Raw windows `[B, L, C]` as scaled float32, by the network's scaler or another."""
        self._check_windows(windows)
        return (scaler or self.scaler).transform(as_tensor(windows))

    def _check_windows(self, windows: Array | Tensor) -> None:
        length, channels = self.shape.input_len, self.shape.channels
        if windows.ndim != 3 or windows.shape[1:] != (length, channels) or not len(windows):
            raise ArgumentError(
                f"windows must be [B, {length}, {channels}] (window, step, channel), got "
                f"{list(windows.shape)}."
            )

    def _scaler_of_windows(self, windows: Array | Tensor) -> ChannelScaler:
        """The network's scaler; where it has one for every series, that of each window's rows."""
        if not self.scaler.series:
            return self.scaler
        fitted = [ChannelScaler.fit([rows]) for rows in as_tensor(windows).cpu().numpy()]
        means, stds = ([getattr(each, name) for each in fitted] for name in ("mean", "std"))
        return ChannelScaler(np.stack(means)[:, None], np.stack(stds)[:, None])

    @property
    def trained(self) -> Trained:
        """The network with its settings and its strategy."""
        return Trained(self.network, self.settings, self.strategy)

    @cached_property
    def errors(self) -> ErrorQuantiles | None:
        """Forecasting: the quantiles of its errors."""
        if self.settings.task != "forecasting" or self.calibration is None:
            return None
        try:
            return ErrorQuantiles.from_record(self.calibration)
        except (KeyError, ValueError):
            raise SACMError("the calibration of the run is damaged: train again.") from None

    @cached_property
    def plan(self) -> CovariatePlan:
        """The covariates that the network was trained with."""
        return CovariatePlan.of(self.settings.covariates())

    def check_channels(self, channels: int, name: str) -> None:
        """Refuse data with another number of channels than the training data."""
        if channels != self.shape.channels:
            raise ArgumentError(
                f"the network was trained on {self.shape.channels} channels but {name} has "
                f"{channels}."
            )

    def _check_task(self, task: str, verb: str) -> None:
        if self.settings.task != task:
            raise ArgumentError(f"a network for {self.settings.task} cannot {verb}.")


def refusal(name: str, share: float, most: float) -> DataError:
    """The error for a window of which too much was repaired or missing."""
    return DataError(
        f"{name}: {share:.0%} of the values that a forecast starts from were repaired or missing, "
        f"more than {most:.0%}: give better rows, or allow more with max_repaired= "
        "(--max-repaired)."
    )


def warn(notes: Iterable[str]) -> None:
    """Give each note on the data as a warning."""
    for note in notes:
        warnings.warn(note, SACMWarning, stacklevel=3)


def is_array(data: Any) -> bool:
    """Whether data are an array or a tensor."""
    return isinstance(data, np.ndarray | Tensor)


def as_tensor(values: Array | Tensor) -> Tensor:
    """Numbers as a float32 tensor without gradients."""
    if isinstance(values, Tensor):
        return values.detach().float()
    array = np.ascontiguousarray(values, dtype=np.float32)
    # Torch shares memory, which it wants writable; frames and mapped files give read-only arrays.
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def like(answer: Tensor, data: Values) -> Values:
    """A tensor on the CPU as the kind of object, on the device, that `data` is."""
    if isinstance(data, Tensor):
        # Tensors made in inference mode are of no use to autograd.
        return answer.clone().to(data.device)
    return answer.numpy()


def check_finite(answers: Tensor, sentence: str) -> None:
    """Refuse answers `[B, …]` that are not finite; `sentence` has a place for the number."""
    if not torch.isfinite(answers).all():
        failed = int((~answers.isfinite()).flatten(1).any(dim=1).nonzero()[0])
        raise SACMError(f"{sentence.format(failed + 1)}: look for missing or extreme values in it.")
