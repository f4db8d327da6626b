"""Forecast a user's own series."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from sacm.data.datasets import ForecastingData, Form, Segment, Splits
from sacm.estimators.base import Estimator, check_share
from sacm.inference.forecast import Forecast, forecast_data
from sacm.inference.history import form_of, read_series
from sacm.inference.predictor import warn
from sacm.settings import RunSettings
from sacm.tasks import let_compete
from sacm.tasks.calibration import MAX_REPAIRED
from sacm.tasks.forecasting import Forecasting

# What a forecast starts from: arrays of rows, and what is of no use any more.
_ARRAYS = ("values", "timestamps", "observed", "covariates")
_NOT_KEPT = ("splits", "ahead", "form", "targets", "broken", "interpolated")


class Interval(NamedTuple):
    """Two forecasts that should enclose the truth, each in the form of the data."""

    lower: Any
    upper: Any


class Forecaster(Estimator):
    """Forecasts the next `horizon` steps of rows `[T, C]`, in their own units.

    Data are pandas or polars frames, wide (times and channels) or long (`unique_id, ds, y`), arrays
    or tensors `[T, C]` or `[T]`, or files; forecasts come back in the same form, with the times
    that follow. Parameters have the names and the defaults of `sacm train forecasting`.

    Without a `backbone` candidates compete within `time_limit`, on original and on repaired rows,
    and the best or their mean is taken; but PatchTST if a setting of one network, such as `epochs`,
    is named. Validation rows choose the epoch; test rows measure and calibrate intervals, or
    validation rows if there are none. See `Estimator` for the attributes of a fitted one.

    Example:
        >>> import numpy as np
        >>> rows = np.sin(np.arange(400) / 4)
        >>> forecaster = Forecaster(
        ...     "iTransformer", input_len=24, horizon=6, size="small", epochs=1
        ... )
        >>> forecaster.fit(rows).predict().shape
        (6,)
    """

    _task = "forecasting"

    def _settings(self, name: str, **others: Any) -> RunSettings:
        """The parameters as settings; candidates compete where no network is described."""
        parameters = self.get_params(deep=False)
        given = {key: value for key, value in parameters.items() if value is not None}
        if self.strategy == Forecasting.default_strategy:  # no strategy is named
            del given["strategy"]
        chosen = let_compete({"task": self._task, "data": "data.csv", **given})
        picked = {key: chosen.get(key) for key in ("backbone", "time_limit", "strategy")}
        return super()._settings(name, **picked, **others)

    def fit(self, data: Any, y: None = None) -> Self:
        """Train on a series; `y` is there for scikit-learn and not used."""
        settings = self._settings("data")
        series = read_series(data, settings.reading())
        if series is not data:
            warn(series.notes)
        self._train(settings.model_copy(update={"data": series.name}), series)
        self._keep(keep_end(series, self.settings_.input_len))
        return self

    def predict(
        self,
        history: Any = None,
        *,
        horizon: int | None = None,
        future_data: Any = None,
        max_repaired: float = MAX_REPAIRED,
    ) -> Any:
        """Forecast what follows the training data, or `history`.

        Args:
            history: Rows to forecast from, in any form of data. Default: the training data.
            horizon: Steps. Default: those of the training; more are forecast from forecasts.
            future_data: A frame or a file with the known-future covariates of these steps, unless
                rows after the last value hold them.
            max_repaired: The share of the last rows' values that may be repaired or missing.
        """
        options = {"horizon": horizon, "future_data": future_data, "max_repaired": max_repaired}
        return self._forecast(history, **options).as_data()

    def predict_interval(
        self,
        history: Any = None,
        *,
        coverage: float = 0.9,
        future_data: Any = None,
        max_repaired: float = MAX_REPAIRED,
    ) -> Interval:
        """Lower and upper bounds that a new value keeps with probability `coverage`.

        Conformal, for each step and channel, from windows after the training rows; as
        `sacm predict --coverage` and `Predictor.predict(intervals=[coverage])`. The probability
        holds if the future resembles these windows. Arguments as for `predict`.
        """
        check_share("coverage", coverage)
        options = {"future_data": future_data, "max_repaired": max_repaired}
        forecast = self._forecast(history, intervals=[coverage], **options)
        return Interval(*map(forecast.give, forecast.bounds.values()))

    def evaluate(self, test: Any) -> dict[str, float | None]:
        """Errors over every window of `test`: `mae`, `mse` (z-scored), `mae_raw`, `mse_raw`."""
        self._check_fitted()
        return self.predictor_.evaluate(test).row

    def score(self, test: Any, y: None = None) -> float:
        """Minus the mean absolute error in z-scored units: higher is better."""
        error = self.evaluate(test)["mae"]
        assert error is not None
        return -error

    def _forecast(self, history: Any, **options: Any) -> Forecast:
        self._check_fitted()
        start, known = (self._data, self._data.notes) if history is None else (history, ())
        forecast = forecast_data(self.predictor_, start, **options)
        warn(note for note in forecast.notes if note not in known)
        return forecast

    def _keep(self, data: ForecastingData) -> None:
        """Remember what forecasts start from."""
        self._data = data
        self.feature_names_in_ = np.array(data.columns, dtype=object)

    def _kept(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        data = self._data
        names = [each.name for each in fields(data) if each.name not in (*_ARRAYS, *_NOT_KEPT)]
        arrays = {name: array for name in _ARRAYS if (array := getattr(data, name)) is not None}
        ahead = data.ahead or {}
        arrays |= {f"ahead {name}": value for name, value in ahead.items()}
        times = None if data.timestamps is None else str(data.timestamps.dtype)
        values: dict[str, Any] = {"data": {name: getattr(data, name) for name in names}}
        values |= {"times": times, "ahead": list(ahead), "form": form_of(data).to_dict()}
        return values, {
            name: torch.from_numpy(array.view(np.int64) if name == "timestamps" else array)
            for name, array in arrays.items()
        }

    def _restore(self, values: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        held: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in values["data"].items()
        }
        held |= {name: tensors[name].numpy() for name in _ARRAYS if name in tensors}
        held["segments"] = tuple(Segment(*segment) for segment in held["segments"])
        held["splits"] = Splits(range(len(held["values"])), range(0), range(0))
        held["ahead"] = {name: tensors[f"ahead {name}"].numpy() for name in values["ahead"]} or None
        held["form"] = Form.from_dict(values["form"])
        if values["times"] is not None:
            held["timestamps"] = held["timestamps"].view(values["times"])
        self._keep(ForecastingData(**held))


def keep_end(data: ForecastingData, count: int) -> ForecastingData:
    """The last `count` rows of every series, which a forecast starts from."""
    rows = data.last_rows(count)
    chosen = np.concatenate(list(rows.values()))
    ends = np.cumsum([0, *map(len, rows.values())]).tolist()
    arrays: dict[str, Any] = dict.fromkeys(("targets", "broken", "interpolated"))
    for name in _ARRAYS:
        arrays[name] = None if (array := getattr(data, name)) is None else array[chosen]
    return replace(
        data,
        form=form_of(data),
        splits=Splits(range(len(chosen)), range(0), range(0)),
        segments=tuple(map(Segment, rows, ends[:-1], ends[1:])),
        **arrays,
    )
