"""Forecast a user's own series."""

from __future__ import annotations

from typing import Any, Self

from sacm.errors import ArgumentError
from sacm.estimators.base import Estimator
from sacm.inference.forecast import Forecast, forecast_data, read_series
from sacm.inference.predictor import warn
from sacm.settings import RunSettings
from sacm.tasks import let_compete
from sacm.tasks.calibration import MAX_REPAIRED
from sacm.tasks.forecasting import Forecasting


class Forecaster(Estimator):
    """Forecasts the next `horizon` steps of rows `[T, C]`, in their own units.

    Data are pandas frames, wide (times and channels) or long (`unique_id, ds, y`), arrays or
    tensors `[T, C]` or `[T]`, or files; forecasts come back in the same form, with the times that
    follow. Parameters have the names and the defaults of `sacm train forecasting`.

    Without a `backbone` candidates compete within `time_limit`, on original and on repaired rows,
    and the best or their mean is taken; but PatchTST if a setting of one network, such as `epochs`,
    is named. Validation rows choose the epoch; test rows, or validation rows if there are none,
    measure and calibrate intervals. See `Estimator` for the attributes of a fitted one.

    Example:
        >>> import numpy as np
        >>> rows = np.sin(np.arange(400) / 4)
        >>> forecaster = Forecaster("iTransformer", input_len=24, horizon=6, size="small", epochs=1)
        >>> forecaster.fit(rows).predict().shape
        (6,)
    """

    _task = "forecasting"

    def _settings(self, name: str, **others: Any) -> RunSettings:
        """The parameters as settings; candidates compete where no network is described."""
        given = {key: value for key, value in self.get_params().items() if value is not None}
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
        self._data = series
        return self

    def predict(
        self, history: Any = None, *, horizon: int | None = None, max_repaired: float = MAX_REPAIRED
    ) -> Any:
        """Forecast what follows the training data, or `history`.

        Args:
            history: Rows to forecast from, in any form; rows after the last value hold known-future
                covariates. Default: the training data, which `save` leaves out.
            horizon: Steps. Default: those of the training; more are forecast from forecasts.
            max_repaired: The share of the last rows' values that may be repaired or missing.
        """
        return self._forecast(history, horizon=horizon, max_repaired=max_repaired).as_data()

    def predict_interval(
        self, history: Any = None, *, coverage: float = 0.9, max_repaired: float = MAX_REPAIRED
    ) -> tuple[Any, Any]:
        """Lower and upper bounds, in the form of the data, that hold a value with `coverage`.

        Conformal, for each step and channel, from windows after the training rows, if the future
        resembles these. Other arguments as for `predict`.
        """
        forecast = self._forecast(history, intervals=[coverage], max_repaired=max_repaired)
        lower, upper = map(forecast.give, forecast.bounds.values())
        return lower, upper

    def evaluate(self, test: Any) -> dict[str, float | None]:
        """Errors over every window of `test`: `mae`, `mse` (z-scored), `mae_raw`, `mse_raw`."""
        return self._fitted.evaluate(test).row

    def _forecast(self, history: Any, **options: Any) -> Forecast:
        predictor, known = self._fitted, tuple[str, ...]()
        if history is None:
            if not hasattr(self, "_data"):
                raise ArgumentError("a loaded forecaster holds no rows: give it the last ones.")
            history, known = self._data, self._data.notes
        forecast = forecast_data(predictor, history, **options)
        warn(note for note in forecast.notes if note not in known)
        return forecast
