"""Forecast a user's own series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from torch import Tensor

from sacm.data.datasets import ForecastingData, Form, Segment, Splits
from sacm.estimators.base import Estimator, check_share
from sacm.inference.forecast import Forecast, forecast_history
from sacm.inference.history import History, add_future, read_history, read_series_as_came
from sacm.inference.intervals import Interval
from sacm.inference.predictor import warn
from sacm.settings import RunSettings
from sacm.tasks import let_compete
from sacm.tasks.calibration import MAX_REPAIRED
from sacm.types import TaskName

_ARRAYS = ("values", "timestamps", "observed", "covariates")


@dataclass(eq=False, repr=False)
class Forecaster(Estimator):
    """Forecasts the next `horizon` steps of rows `[T, C]`, in their own units.

    Data are pandas or polars frames, wide (times and channels) or long (`unique_id, ds, y`), arrays
    or tensors `[T, C]` or `[T]`, or files; forecasts come back in the same form, with the times
    that follow. Parameters have the names and the defaults of `sacm train forecasting`. See
    `Estimator` for the other parameters and the attributes of a fitted one.

    Args:
        backbone: A network from `sacm.backbones.names("forecasting")`. Default: candidates compete
            within `time_limit`, and the best or their mean is taken; but PatchTST if a setting of
            one network, such as `epochs`, is named.
        strategy: "guard" repairs broken and missing values, "raw" takes them as they are. Where
            candidates compete the default tries both, and validation decides.
        time_limit: Seconds, or text such as "10m" or "none". Default: 60 where candidates compete.
        minimum: No forecast is below it; "none" for no limit. Default: 0 for channels that never
            were below it.
        input_len: Steps that the network sees. Default: two seasons or more, less for short series.
        horizon: Steps to forecast. Default: a season, less for short series.
        validation_stride: Rows between two validation windows.
        train_fraction: Use this share of the training windows only.
        train_quantiles: Train for these quantiles by pinball loss.
        time: The time column, or several that make the time. Default: found.
        date_order: "day first", "month first" or "year first".
        zone: Time zone of the times, such as "Europe/Berlin".
        frequency: Time step as a pandas alias. Default: found.
        columns: The channels. Default: all that are nothing else.
        target: The channels to forecast; the others are inputs. Default: all.
        ignore: Columns to leave out.
        label: A column of labels, which is no channel.
        id: The column that tells several series apart. Default: found.
        split: Shares of the rows for training, validation and test, in order of time. Default:
            0.7, 0.1, 0.2. Validation rows choose the epoch; test rows measure and calibrate
            intervals, or validation rows if there are none.
        scaling: Whether each of several "series" is scaled by its own rows, or all by "shared"
            ones.
        decimal: The sign before fractions in text.
        category: Columns of words that become inputs of 0 and 1.
        duplicates: "mean" or "first" merges rows of the same time. Default: an error.
        resample: Average irregular rows into steps of this length.
        na: Words or numbers that stand for a missing value.
        sheet: The sheet of an Excel file, or the file in a zip archive.
        encoding: Code page of a text file.
        past: Columns that are inputs only.
        future: Columns that are known ahead.
        static: Columns that never change within a series of several.
        calendar: Features of the times: "hour", "weekday", "weekend", "monthday", "yearday".
        holidays: Country whose public holidays count.

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

    backbone: str | None = None  # type: ignore[assignment]  # candidates compete
    strategy: str = field(default="guard", kw_only=True)
    input_len: int | None = field(default=None, kw_only=True)
    horizon: int | None = field(default=None, kw_only=True)
    validation_stride: int = field(default=1, kw_only=True)
    train_fraction: float = field(default=1.0, kw_only=True)
    train_quantiles: Sequence[float] | None = field(default=None, kw_only=True)
    minimum: float | str | None = field(default=None, kw_only=True)
    time: str | Sequence[str] | None = field(default=None, kw_only=True)
    date_order: str | None = field(default=None, kw_only=True)
    zone: str | None = field(default=None, kw_only=True)
    frequency: str | None = field(default=None, kw_only=True)
    columns: Sequence[str] | None = field(default=None, kw_only=True)
    target: str | Sequence[str] | None = field(default=None, kw_only=True)
    ignore: Sequence[str] | None = field(default=None, kw_only=True)
    label: str | None = field(default=None, kw_only=True)
    id: str | Sequence[str] | None = field(default=None, kw_only=True)
    split: Sequence[float] | None = field(default=None, kw_only=True)
    scaling: Literal["series", "shared"] | None = field(default=None, kw_only=True)
    decimal: Literal[",", "."] | None = field(default=None, kw_only=True)
    category: Sequence[str] | None = field(default=None, kw_only=True)
    duplicates: Literal["mean", "first", "error"] | None = field(default=None, kw_only=True)
    resample: str | None = field(default=None, kw_only=True)
    na: Sequence[str] | None = field(default=None, kw_only=True)
    sheet: str | None = field(default=None, kw_only=True)
    encoding: str | None = field(default=None, kw_only=True)
    past: Sequence[str] | None = field(default=None, kw_only=True)
    future: Sequence[str] | None = field(default=None, kw_only=True)
    static: Sequence[str] | None = field(default=None, kw_only=True)
    calendar: Sequence[str] | None = field(default=None, kw_only=True)
    holidays: str | None = field(default=None, kw_only=True)

    def _settings(self, name: str, **others: Any) -> RunSettings:
        """The parameters as settings; candidates compete where no network is described."""
        parameters = self.get_params(deep=False)
        given = {key: value for key, value in parameters.items() if value is not None}
        if self.strategy == type(self).strategy:  # the default: no strategy is named
            del given["strategy"]
        chosen = let_compete({"task": self._task, "data": "data.csv", **given})
        picked = {key: chosen.get(key) for key in ("backbone", "time_limit", "strategy")}
        return super()._settings(name, **picked, **others)

    def fit(self, data: Any, y: None = None) -> Self:
        """Train on a series; `y` is there for scikit-learn and not used."""
        settings = self._settings("data")
        history = read_series_as_came(data, settings.reading())
        if not isinstance(data, ForecastingData):
            warn(history.data.notes)
        self._train(settings.model_copy(update={"data": history.data.name}), history.data)
        self.feature_names_in_ = np.array(history.data.columns, dtype=object)
        self._history = history._replace(data=keep_end(history.data, self.settings_.input_len))
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
        options = {"horizon": horizon, "max_repaired": max_repaired}
        return self._forecast(history, future_data, **options).as_data()

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
        options = {"intervals": [coverage], "max_repaired": max_repaired}
        found = self._forecast(history, future_data, **options)
        return Interval(*(found.give(values) for values in found.bounds.values()))

    def evaluate(self, test: Any) -> dict[str, float | None]:
        """Errors over every window of `test`: `mae`, `mse` (z-scored), `mae_raw`, `mse_raw`."""
        self._check_fitted()
        return self.predictor_.evaluate(test).row

    def score(self, test: Any, y: None = None) -> float:
        """Minus the mean absolute error in z-scored units: higher is better."""
        error = self.evaluate(test)["mae"]
        assert error is not None
        return -error

    def _forecast(self, source: Any, future_data: Any, **options: Any) -> Forecast:
        self._check_fitted()
        horizon = options.get("horizon") or self.settings_.horizon
        if source is not None:
            history = read_history(self.predictor_, source, future_data, horizon)
        else:
            history = self._history
        if source is None and future_data is not None:
            reading, plan = self.settings_.reading(), self.predictor_.plan
            history = add_future(history, future_data, plan, horizon=horizon, options=reading)
        found = forecast_history(self.predictor_, history, **options)
        known = set(self._history.data.notes) if source is None else set()
        warn(note for note in found.notes if note not in known)
        return found

    def _kept(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        data, form, rows = self._history
        held = {each.name: getattr(data, each.name) for each in fields(data)}
        arrays = {name: value for name, value in held.items() if isinstance(value, np.ndarray)}
        ahead = held.pop("ahead") or {}
        arrays |= {f"ahead {name}": value for name, value in ahead.items()}
        plain = {name: held[name] for name in held if name not in {*arrays, "splits"}}
        times = None if data.timestamps is None else str(data.timestamps.dtype)
        tensors = {
            name: torch.from_numpy(array.view(np.int64) if name == "timestamps" else array)
            for name, array in arrays.items()
        }
        values = {"data": plain, "times": times, "ahead": list(ahead)}
        return {**values, "form": form.to_dict(), "rows": rows}, tensors

    def _restore(self, values: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        held: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in values["data"].items()
        }
        held |= {name: tensor.numpy() for name, tensor in tensors.items() if "ahead " not in name}
        held["segments"] = tuple(Segment(*segment) for segment in held["segments"])
        held["splits"] = _one_split(len(held["values"]))
        ahead = {name: tensors[f"ahead {name}"].numpy() for name in values["ahead"]}
        if values["times"] is not None:
            held["timestamps"] = held["timestamps"].view(values["times"])
        data = ForecastingData(**held, ahead=ahead or None)
        self._history = History(data, Form.from_dict(values["form"]), values["rows"])
        self.feature_names_in_ = np.array(data.columns, dtype=object)


def keep_end(data: ForecastingData, count: int) -> ForecastingData:
    """The last `count` rows of every series, which a forecast starts from."""
    rows = data.last_rows(count)
    chosen = np.concatenate(list(rows.values()))
    ends = np.cumsum([0, *map(len, rows.values())])
    segments = [
        Segment(name, int(start), int(stop))
        for name, start, stop in zip(rows, ends[:-1], ends[1:], strict=True)
    ]
    arrays: dict[str, Any] = {
        name: None if getattr(data, name) is None else getattr(data, name)[chosen]
        for name in _ARRAYS
    }
    return replace(
        data,
        splits=_one_split(len(chosen)),
        segments=tuple(segments),
        targets=None,
        broken=None,
        **arrays,
    )


def _one_split(rows: int) -> Splits:
    return Splits(range(rows), range(0), range(0))
