"""Predictor: a finished run or a saved estimator, ready to be asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from sacm.data.datasets import AnyData
from sacm.data.load import names_file, resolve
from sacm.errors import ArgumentError, DataError, SACMError
from sacm.files import read_json
from sacm.inference.answer import TableAnswer
from sacm.inference.classify import predict_labels, tabulate_labels
from sacm.inference.detect import predict_alarms, tabulate_alarms
from sacm.inference.forecast import predict_next, tabulate_next
from sacm.inference.trained import TrainedNetwork
from sacm.inference.uncertainty import Levels, tabulate_bounds
from sacm.tasks import Result, get_task
from sacm.training.run import Run

ESTIMATOR_FILE = "estimator.json"  # in the folder of a saved estimator
_PREDICT: dict[str, Callable[..., Any]] = {
    "forecasting": predict_next,
    "classification": predict_labels,
    "anomaly": predict_alarms,
}
_TABULATE: dict[str, Callable[..., TableAnswer]] = {
    "forecasting": tabulate_next,
    "classification": tabulate_labels,
    "anomaly": tabulate_alarms,
}


class Predictor(TrainedNetwork):
    """A trained network that forecasts, classifies or finds anomalies in new data.

    Several threads may share one predictor. Arrays and tensors need no pandas.

    Example:
        >>> predictor = sacm.Predictor.load("runs/NAME")  # doctest: +SKIP
        >>> predictor.predict(frame)  # doctest: +SKIP
    """

    @classmethod
    def load(cls, source: str | Path | Run) -> Self:
        """Open a finished run or a saved estimator; its training data are not needed.

        Args:
            source: The folder of either, or a `Run`.

        Returns:
            The predictor, on the CPU.

        Raises:
            SACMError: The folder is neither, is not finished, or is damaged.
        """
        run = source if isinstance(source, Run) else Run.load(source)
        return cls(
            network=run.load_model(),
            settings=run.settings,
            shape=run.shape,
            strategy=run.strategy,
            scaler=run.scaler,
            threshold=_threshold(run),
        )

    def predict(self, data: Any, *, future_data: Any = None) -> Any:
        """Answer for new data.

        Args:
            data: A pandas or polars frame, a file, the name of a data set, or an array or tensor:
                rows `[T, C]` (a window `[L, C]` is the shortest), or windows `[B, L, C]` that are
                answered one by one. For classification an array is one case `[L, C]` or cases
                `[B, L, C]`, in time order first.
            future_data: A frame or a file with the known-future covariates of the steps to
                forecast. Not needed if the rows after the last value in `data` hold them.

        Returns:
            Forecasting: what follows the data, in the form they came in; `[H, C]` for rows and
            `[B, H, C]` for windows. Classification: a label for every case. Anomaly detection:
            `score` and `alarm` of every row, as a frame, or as a pair of arrays for arrays.

        Raises:
            ArgumentError: The data have another number of channels or another shape.
            DataError: The data cannot be read, or are too short.
            SACMError: An answer is not finite.
        """
        return _PREDICT[self.settings.task](self, self._find(data), **self._ahead(future_data))

    def tabulate(
        self,
        data: Any,
        *,
        coverages: Sequence[float] = (),
        quantiles: Sequence[float] = (),
        future_data: Any = None,
    ) -> TableAnswer:
        """Answer for new data as a pandas frame with everything there is to say.

        Args:
            data: As for `predict`, but for windows.
            coverages: Forecasting: shares of future values that intervals should enclose; each
                adds columns such as `load_lower_80` and `load_upper_80`.
            quantiles: Forecasting: levels of quantiles; each adds columns such as `load_q90`.
            future_data: As for `predict`.

        Returns:
            The frame and notes on the data. Forecasting: times or row numbers and channels;
            classification: case, class and the probability of each class; anomaly detection: row,
            score, threshold and alarm.
        """
        found, ahead = self._find(data), self._ahead(future_data)
        if coverages or quantiles:
            levels = Levels(tuple(coverages), tuple(quantiles))
            return tabulate_bounds(self, found, levels, **ahead)
        return _TABULATE[self.settings.task](self, found, **ahead)

    def evaluate(self, data: AnyData) -> Result:
        """Test on the test part of a data set.

        Args:
            data: A data set for the task of this network.

        Returns:
            The measures and how many windows were seen.

        Raises:
            DataError: The data have other columns, or no test part.
        """
        self.shape.check_columns(data.name, getattr(data, "columns", ()))
        task = get_task(self.settings.task)
        windows = task.windows(self.settings, self.strategy.apply(data), scaler=self.scaler)
        if not len(windows.test):
            raise DataError(f"{self.settings.data} has no test part to evaluate on.")
        return task.evaluate(self.network, windows, data, self.settings, self.strategy)

    def _find(self, data: Any) -> Any:
        """The data set that a name stands for; everything else as it is."""
        if isinstance(data, str) and not names_file(data):
            return resolve(data, task=self.settings.task, reading=self.roles)
        return data

    def _ahead(self, future_data: Any) -> dict[str, Any]:
        """The argument of forecasts; other tasks have no future."""
        if future_data is None:
            return {}
        if self.settings.task != "forecasting":
            raise ArgumentError(f"future_data: {self.settings.task} has no use for it.")
        return {"future_data": future_data}


def _threshold(run: Run) -> float | None:
    """The threshold of a detector, from a saved estimator or from a run's results."""
    path = run.folder / ESTIMATOR_FILE
    if not path.exists():
        return run.threshold
    record = read_json(path)
    if not isinstance(record, dict) or not isinstance(record.get("values"), dict):
        raise SACMError(f"{path} is damaged: save the estimator again.")
    threshold: float | None = record["values"].get("threshold")
    return threshold
