"""A trained network with what its use needs: windows in raw units in, answers in raw units out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sacm.backbones.base import Backbone, DetectorNetwork
from sacm.backbones.quantiles import at_level
from sacm.data.covariates import ROLES, CovariatePlan
from sacm.data.datasets import ForecastingData
from sacm.data.scaling import ChannelScaler, cover_series
from sacm.errors import ArgumentError, SACMError
from sacm.settings import ResolvedSettings
from sacm.strategies.base import Strategy
from sacm.tasks.base import EVALUATION_BATCH, device_of
from sacm.tasks.shape import NetworkShape

Array = NDArray[Any]
Values = TypeVar("Values", Array, Tensor)
UNDECIDED = "the class of case {} is undecided, for the network's answer is not finite"


@dataclass(frozen=True, eq=False)
class TrainedNetwork:
    """A network in evaluation mode, its settings, and what its inputs are scaled by.

    The network is put into evaluation mode once, here. No method changes it, so that several
    threads may share one object.

    Attributes:
        network: The network.
        settings: What it was trained with.
        shape: What it takes and gives.
        strategy: How it was trained; some strategies change the inputs of a trained network too.
        scaler: Mean and deviation of every channel of the training rows, of each series if they
            were scaled one by one.
        threshold: The anomaly score from which a row is an alarm; None for other tasks.
    """

    network: Backbone
    settings: ResolvedSettings
    shape: NetworkShape
    strategy: Strategy
    scaler: ChannelScaler
    threshold: float | None = None

    def __post_init__(self) -> None:
        self.network.eval()

    def forecast(
        self,
        windows: Values,
        stamps: Values | None = None,
        covariates: Values | None = None,
        *,
        scaler: ChannelScaler | None = None,
        level: float | None = None,
    ) -> Values:
        """Forecast what follows each window.

        Args:
            windows: `[B, L, C]` in raw units, an array or a tensor.
            stamps: Calendar features `[B, L + H, 4]` of inputs and targets (see
                `sacm.data.stamp_features`), for networks that were trained with a calendar.
            covariates: `[B, L + H, K]` in raw units, for networks that were trained with some.
            scaler: What these windows are scaled by. Default: that of the network, or, if it has
                one for every series, each window's own rows, for an array names no series.
            level: The quantile to forecast, for networks that were trained for some; others
                give their forecast.

        Returns:
            `[B, H, C]` in raw units, of the kind and on the device of `windows`.

        Raises:
            ArgumentError: The network is of another task, or the windows are of another shape.
            SACMError: A forecast is not finite.
        """
        self._check_task("forecasting", "forecast")
        calendar = self.shape.calendar_sizes is not None
        if calendar and stamps is None:
            raise ArgumentError(
                "the data have no timestamps, but the network was trained with calendar features."
            )
        if self.shape.covariates is not None and covariates is None:
            raise ArgumentError(
                "the network was trained with covariates: give the data as a table that has them."
            )
        beside: list[Tensor | None] = []
        if calendar and stamps is not None:
            beside.append(as_tensor(stamps))
        if covariates is not None:
            beside = [*(beside or [None]), as_tensor(covariates)]
        scaler = scaler or self.scaler_of_windows(windows)
        answer = self.answer(self.network, self.scale(windows, scaler), *beside)
        scaled = at_level(answer, self.settings.train_quantiles, level)
        check_finite(scaled, "the forecast of window {} is not finite")
        return like(scaler.inverse(scaled), windows)

    def scaler_of_windows(self, windows: Array | Tensor) -> ChannelScaler:
        """The network's scaler; where it has one for every series, that of each window's rows."""
        if not self.scaler.series:
            return self.scaler
        found = [ChannelScaler.fit([own]) for own in as_tensor(windows).cpu().numpy()]
        means, stds = ([getattr(own, name) for own in found] for name in ("mean", "std"))
        return ChannelScaler(np.stack(means)[:, None], np.stack(stds)[:, None])

    def scaler_of_series(self, data: ForecastingData) -> ChannelScaler:
        """The scaler of windows of every series in `data`, in their order.

        One that the network has not seen is scaled by its own rows.
        """
        whole = cover_series(self.scaler, data, self.shape.input_len)
        return whole.of_series(list(data.last_rows(1)))

    def probabilities(self, windows: Values) -> Values:
        """The probability of each class.

        Args:
            windows: Cases `[B, L, C]` in raw units, an array or a tensor.

        Returns:
            `[B, K]` float64, in the order of `shape.classes`.

        Raises:
            ArgumentError: The network is of another task, or the windows are of another shape.
            SACMError: An answer is not finite.
        """
        self._check_task("classification", "classify")
        logits = self.answer(self.network, self.scale(windows)).double()
        check_finite(logits, UNDECIDED)
        return like(logits.softmax(dim=1), windows)

    def scores(self, windows: Values) -> Values:
        """An anomaly score for each step of each window.

        Args:
            windows: `[B, L, C]` in raw units, an array or a tensor.

        Returns:
            `[B, L]`; higher is more anomalous.

        Raises:
            ArgumentError: The network is of another task, or the windows are of another shape.
            SACMError: A score is not finite.
        """
        self._check_task("anomaly", "score rows")
        network, score = self.network, self.settings.score
        assert isinstance(network, DetectorNetwork)
        found = self.answer(lambda x: network.anomaly_scores(x, score=score), self.scale(windows))
        check_finite(found, "the anomaly score of window {} is not finite")
        return like(found, windows)

    @property
    def plan(self) -> CovariatePlan:
        """The covariates that the network was trained with."""
        return CovariatePlan.of(self.settings.covariates())

    @property
    def roles(self) -> dict[str, tuple[str, ...]]:
        """The columns that are covariates, by role, as options for reading."""
        return {role: names for role in ROLES if (names := getattr(self.plan, role))}

    def answer(self, ask: Callable[..., Tensor], x: Tensor, *others: Tensor | None) -> Tensor:
        """Ask the network about scaled windows, a batch at a time and without gradients.

        Args:
            ask: The network or one of its methods.
            x: Scaled windows `[B, L, C]`.
            others: Further arguments `[B, …]`, or None.

        Returns:
            The answers in float32 on the CPU.
        """
        device = device_of(self.network)

        def part_of(one: Tensor | None, start: int) -> Tensor | None:
            return None if one is None else one[start : start + EVALUATION_BATCH].to(device)

        with torch.inference_mode():
            parts = [
                ask(
                    self.strategy.inputs(x[start : start + EVALUATION_BATCH].to(device)),
                    *(part_of(other, start) for other in others),
                ).float()
                for start in range(0, len(x), EVALUATION_BATCH)
            ]
            return (parts[0] if len(parts) == 1 else torch.cat(parts)).cpu()

    def scale(self, windows: Array | Tensor, scaler: ChannelScaler | None = None) -> Tensor:
        """Raw windows `[B, L, C]` as scaled float32, by the network's scaler or another.

        Raises:
            ArgumentError: They are of another shape.
        """
        length, channels = self.shape.input_len, self.shape.channels
        if windows.ndim != 3 or windows.shape[1:] != (length, channels) or not len(windows):
            raise ArgumentError(
                f"windows must be [B, {length}, {channels}] (window, step, channel), got "
                f"{list(windows.shape)}."
            )
        return (scaler or self.scaler).transform(as_tensor(windows))

    def check_channels(self, found: int, name: str) -> None:
        """Refuse data with another number of channels.

        Raises:
            ArgumentError: The number is another than that of the training data.
        """
        if found != self.shape.channels:
            raise ArgumentError(
                f"the network was trained on {self.shape.channels} channels but {name} has {found}."
            )

    def _check_task(self, task: str, verb: str) -> None:
        if self.settings.task != task:
            raise ArgumentError(f"a network for {self.settings.task} cannot {verb}.")


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
