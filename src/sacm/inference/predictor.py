"""Predictor: a finished run or a saved estimator, ready to answer for new data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from sacm.data.covariates import ROLES
from sacm.data.load import names_file, resolve
from sacm.errors import ArgumentError
from sacm.inference import classify, detect, forecast
from sacm.inference.intervals import describe_intervals
from sacm.inference.network import Answer, TrainedNetwork, is_array, warn
from sacm.tasks import Result
from sacm.tasks.calibration import MAX_REPAIRED


class Predictor(TrainedNetwork):
    """A trained network for new data; arrays are rows `[T, C]` or windows `[B, L, C]`.

    Several threads may share one predictor: no method changes it. Arrays need no pandas.

    Example:
        >>> predictor = sacm.Predictor.load("runs/NAME")  # doctest: +SKIP
        >>> predictor.predict(frame)  # doctest: +SKIP
    """

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
        options = {"intervals": intervals, "quantiles": quantiles, "horizon": horizon}
        options = self._options({**options, "future_data": future_data}, max_repaired)
        if self.settings.task == "classification":
            return classify.predict_labels(self, self._find(data))
        if self.settings.task == "anomaly":
            return detect.predict_alarms(self, self._find(data))
        if is_array(data) and data.ndim == 3:
            if intervals or quantiles or horizon:
                raise ArgumentError("windows [B, L, C] get plain forecasts: give rows [T, C].")
            return self.forecast(data, max_repaired=max_repaired)
        prediction = forecast.forecast_source(self, self._find(data), **options)
        warn(prediction.notes)
        answer = prediction.as_data()
        return answer.to(data.device) if isinstance(answer, Tensor) else answer

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
        options = {"intervals": intervals, "quantiles": quantiles, "horizon": horizon}
        options = self._options({**options, "future_data": future_data}, max_repaired)
        data = self._find(data)
        if self.settings.task == "classification":
            return classify.tabulate_labels(self, data)
        if self.settings.task == "anomaly":
            return detect.tabulate_alarms(self, data)
        prediction = forecast.forecast_source(self, data, **options)
        notes = (*prediction.notes, *prediction.details)
        if prediction.bounds and self.errors is not None:
            notes = (*notes, describe_intervals(self.errors))
        return Answer(prediction.table(), notes, prediction.history.data.understood, prediction)

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
        evaluate = {
            "forecasting": forecast.evaluate_forecasts,
            "classification": classify.evaluate_cases,
            "anomaly": detect.evaluate_rows,
        }[self.settings.task]
        return evaluate(self, self._find(data))

    def _find(self, data: Any) -> Any:
        """The data set that a name stands for; everything else as it is."""
        if isinstance(data, str) and not names_file(data):
            roles = {role: names for role in ROLES if (names := getattr(self.plan, role))}
            return resolve(data, task=self.settings.task, reading=roles)
        return data

    def _options(self, given: dict[str, Any], max_repaired: float) -> dict[str, Any]:
        """Options of forecasts, which other tasks refuse."""
        if self.settings.task != "forecasting":
            for name, value in given.items():
                if value is not None and not (isinstance(value, tuple | list) and not value):
                    raise ArgumentError(f"{name}: {self.settings.task} has no use for it.")
        return {**given, "max_repaired": max_repaired}
