"""Forecast a user's own series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from sacm.data.covariates import ROLES
from sacm.data.datasets import ForecastingData, Segment
from sacm.data.gaps import Policy
from sacm.data.own.series import Scaling
from sacm.data.splits import Splits
from sacm.data.tables.form import Form
from sacm.data.tables.timeline import Irregular
from sacm.data.windows import SplitWindows, forecasting_windows
from sacm.errors import DataError
from sacm.estimators.base import Estimator, check_share
from sacm.estimators.intervals import Interval, absolute_residuals, conformal_radius
from sacm.estimators.parameters import parameters_from_settings
from sacm.inference.answer import warn_of
from sacm.inference.forecast import forecast_ahead, give
from sacm.inference.future_data import add_future
from sacm.inference.history import SeriesReading, keep_tail, read_as_came, read_history
from sacm.tasks import get_task
from sacm.tasks.forecasting import Forecasting
from sacm.types import TaskName

_ARRAYS = ("values", "timestamps", "targets", "observed", "covariates")


class Forecaster(Estimator):
    """Forecasts the next `horizon` steps of one or several series, in their own units.

    Data are pandas or polars frames, wide (timestamps and channels) or long (`unique_id, ds, y`),
    arrays or tensors `[T]` or `[T, C]`, or files; forecasts come back in the same form, with the
    timestamps that follow. Covariates are columns of a frame: `past`, `future` and `static` name
    them, `calendar` and `holidays` ask for features of the timestamps. See `Estimator` for the
    attributes of a fitted one.

    Args:
        backbone: A network from `sacm.backbones.names("forecasting")`.
        input_len: Steps that the network sees.
        horizon: Steps to forecast.
        validation: Share of the rows, the last ones, that chooses the epoch and calibrates
            intervals.
        timestamp: The time column of a frame. Default: found.
        columns: The channels of a frame. Default: all that are nothing else.
        missing: "interpolate", "mask" (filled in, but not learnt from) or "error".
        irregular: "keep" takes rows whose timestamps lie on no grid as evenly spaced.
        scaling: Whether each of several "series" is scaled by its own rows, or all by "shared"
            ones.
        guard: Whether broken values are found and repaired, in training and prediction.
        accelerator: "cpu", "gpu", "mps" or "auto".
        folder: Keep the training run there; it is not repeated for the same data and settings.
        verbose: Whether progress is shown.
        settings: Any other setting of a run by name, such as `strategy`, `size`, `seed`, `epochs`,
            `learning_rate`, `batch_size` or `overrides` (of the backbone): see `sacm train --help`.

    Example:
        >>> import numpy as np
        >>> rows = np.sin(np.arange(400) / 4)
        >>> forecaster = Forecaster(
        ...     "iTransformer", input_len=24, horizon=6, size="small", epochs=1
        ... )
        >>> forecaster.fit(rows).predict().shape
        (6,)
    """

    _task: ClassVar[TaskName] = "forecasting"

    @parameters_from_settings(without=Forecasting.unused)
    def __init__(
        self,
        backbone: str = "PatchTST",
        *,
        input_len: int = 96,
        horizon: int = 96,
        validation: float = 0.2,
        timestamp: str | None = None,
        columns: Sequence[str] | None = None,
        missing: Policy = "interpolate",
        irregular: Irregular = "error",
        scaling: Scaling = "series",
        guard: bool = False,
        accelerator: str = "cpu",
        folder: str | Path | None = None,
        verbose: bool = False,
        **settings: Any,
    ) -> None: ...

    def fit(self, data: Any, y: None = None) -> Self:
        """Train on a series; `y` is there for scikit-learn and not used."""
        check_share("validation", self.validation)
        reading = read_as_came(
            data,
            ratios=(1 - self.validation, self.validation, 0.0),
            timestamp=self.timestamp,
            columns=self.columns,
            missing=self.missing,
            irregular=self.irregular,
            reading={**self._settings("data").reading(), "scaling": self.scaling},
        )
        if not isinstance(data, ForecastingData):
            warn_of(reading.data.notes)
        settings = self._settings(reading.data.name)
        self._train(settings, reading.data)
        self.feature_names_in_ = np.array(reading.data.columns, dtype=object)
        end = keep_tail(reading.data, self.settings_.input_len + self.settings_.horizon)
        self._reading, self._rows = SeriesReading(end, reading.form), len(reading.data.values)
        self._residuals: np.ndarray | None = None
        return self

    def predict(self, history: Any = None, *, future_data: Any = None) -> Any:
        """The `horizon` steps after the end of the training data, or of `history`.

        `future_data` is a frame or a file with the known-future covariates of these steps, unless
        rows after the last value hold them.
        """
        reading, rows = self._history(history, future_data)
        return give(reading, forecast_ahead(self.predictor_, reading.data), rows)

    def predict_interval(
        self, history: Any = None, *, coverage: float = 0.9, future_data: Any = None
    ) -> Interval:
        """Lower and upper bounds that a new value keeps with probability `coverage`.

        Split conformal, for each step and channel, from the residuals on the validation rows. The
        probability is exact if future windows resemble those; they overlap and have chosen the
        epoch, so take it as close, not as guaranteed.
        """
        reading, rows = self._history(history, future_data)
        if self._residuals is None:
            windows = self._windows(self._reading.data).val
            self._residuals = absolute_residuals(self.predictor_, windows)
        scaler = self.predictor_.scaler_of_series(reading.data)
        radius = conformal_radius(self._residuals, coverage) * scaler.std  # [H, C] or [S, H, C]
        forecast = forecast_ahead(self.predictor_, reading.data)
        bounds = (forecast.values - radius, forecast.values + radius)
        return Interval(*(give(reading, forecast._replace(values=b), rows) for b in bounds))

    def evaluate(self, test: Any) -> dict[str, float | None]:
        """Errors over every window of `test`: `mae`, `mse` (z-scored), `mae_raw`, `mse_raw`."""
        self._check_fitted()
        data = self._history(test)[0].data
        input_len, horizon = self.settings_.input_len, self.settings_.horizon
        longest = max(len(rows) for split in ("train", "test") for rows in data.ranges(split))
        if longest < input_len + horizon:
            raise DataError(
                f"{data.name} has {longest} rows but a window to evaluate needs input_len + horizon"
                f" = {input_len} + {horizon}."
            )
        windows = self._windows(data)
        chosen = windows.test if len(windows.test) else windows.train
        result = get_task(self._task).evaluate(
            self.model_,
            SplitWindows(chosen, chosen, chosen),
            data,
            self.settings_,
            self.predictor_.strategy,
        )
        return result.row

    def score(self, test: Any, y: None = None) -> float:
        """Minus the mean absolute error in z-scored units: higher is better."""
        error = self.evaluate(test)["mae"]
        assert error is not None
        return -error

    def _history(self, source: Any, future_data: Any = None) -> tuple[SeriesReading, int]:
        """What to forecast from and how many rows it has."""
        self._check_fitted()
        reading, rows = (self._reading, self._rows) if source is None else self._read(source)
        if future_data is None:
            return reading, rows
        trained, horizon = self.predictor_, self.settings_.horizon
        options = self.settings_.reading()
        added = add_future(reading, future_data, trained.plan, horizon=horizon, options=options)
        return added, rows

    def _read(self, source: Any) -> tuple[SeriesReading, int]:
        """Data other than those of `fit`."""
        reading = read_history(
            source,
            columns=self._reading.columns,
            frequency=self._reading.data.frequency,
            timestamp=self.timestamp,
            missing=self.missing,
            irregular=self.irregular,
            reading=self.settings_.reading(),
        )
        if not isinstance(source, ForecastingData):
            warn_of(reading.data.notes)
        self.predictor_.check_channels(reading.data.channels, reading.data.name)
        return reading, len(reading.data.values)

    def _windows(self, data: ForecastingData) -> SplitWindows[Any]:
        return forecasting_windows(
            data,
            stamps=self.predictor_.shape.calendar_sizes is not None,
            scaler=self.scaler_,
            input_len=self.settings_.input_len,
            horizon=self.settings_.horizon,
            plan=self.predictor_.plan,
        )

    def _kept(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        data, form = self._reading
        arrays = {name: getattr(data, name) for name in _ARRAYS if getattr(data, name) is not None}
        values = {
            "name": data.name,
            "columns": data.columns,
            "frequency": data.frequency,
            "splits": [[rows.start, rows.stop] for rows in data.splits],
            "segments": data.segments,
            "time_type": None if data.timestamps is None else str(data.timestamps.dtype),
            "form": form.to_dict(),
            "rows": self._rows,
            "zone": data.zone,
            "roles": {role: getattr(data, role) for role in ROLES},
            "ahead": list(data.ahead or ()),
        }
        tensors = {
            name: torch.from_numpy(array.view(np.int64) if name == "timestamps" else array)
            for name, array in arrays.items()
        }
        for place, ahead in enumerate((data.ahead or {}).values()):
            tensors[f"ahead {place}"] = torch.from_numpy(ahead)
        return values, tensors

    def _restore(self, values: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        arrays: dict[str, Any] = {
            name: tensors[name].numpy() for name in _ARRAYS if name in tensors
        }
        arrays |= {role: tuple(own) for role, own in values.get("roles", {}).items()}
        names = values.get("ahead", [])
        ahead = {name: tensors[f"ahead {place}"].numpy() for place, name in enumerate(names)}
        if "timestamps" in arrays:
            arrays["timestamps"] = arrays["timestamps"].view(values["time_type"])
        data = ForecastingData(
            name=values["name"],
            columns=tuple(values["columns"]),
            splits=Splits(*(range(*rows) for rows in values["splits"])),
            frequency=values["frequency"],
            segments=tuple(Segment(*segment) for segment in values["segments"]),
            ahead=ahead or None,
            zone=values.get("zone"),
            **arrays,
        )
        self._reading = SeriesReading(data, Form.from_dict(values["form"]))
        self._rows = values["rows"]
        self._residuals = None
        self.feature_names_in_ = np.array(data.columns, dtype=object)
