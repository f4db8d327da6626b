"""Forecasting with a trained network: what follows the end of a series, in its own units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from sacm.data.batches import ForecastWindows
from sacm.data.covariates import check_roles, future_timestamps, stamp_features, window_ahead
from sacm.data.datasets import ForecastingData, Form
from sacm.data.scaling import ChannelScaler, cover_series, new_series
from sacm.data.windows import SplitWindows, forecasting_windows, window_ranges
from sacm.errors import ArgumentError, DataError
from sacm.inference.history import choose_columns, form_of, read_history
from sacm.inference.predictor import Answer, Array, Predictor, is_array, refusal, warn
from sacm.strategies.guard import mark_broken_rules
from sacm.tasks import Result, get_task
from sacm.tasks.calibration import MAX_REPAIRED, ErrorQuantiles, window_moves

if TYPE_CHECKING:
    import pandas as pd

_NAMED = 5  # series that a note names
_SAID = 0.1  # share of a channel's last values from which their repair is a warning


class Forecast(NamedTuple):
    """Forecasts of S series.

    Attributes:
        data: What they follow.
        series: Names of the series that have a forecast.
        values: `[S, H, C]` in the units of the data.
        times: `[S, H]`; None where rows have none.
        bounds: Further columns by the end of their names, such as `lower_80`, like `values`.
        repaired: Which of each window's values were repaired or missing `[S, L, C]`.
        notes: What a user must know, one sentence each: given as warnings.
        details: What else there is to say: small repairs, series that the network has not seen.
    """

    data: ForecastingData
    series: list[str]
    values: Array
    times: Array | None
    bounds: dict[str, Array]
    repaired: Array
    notes: tuple[str, ...]
    details: tuple[str, ...] = ()

    @property
    def form(self) -> Form:
        """The form that the data came in."""
        return form_of(self.data)

    def as_data(self) -> Any:
        """The forecast in the form of the data; with bounds a frame has columns for them."""
        if self.bounds and self.form.kind in ("array", "tensor", "series"):
            return self.table()
        frame, columns = self.give(self.values), self._bound_columns()
        if not columns:
            return frame
        return (frame.with_columns if self.form.kind == "polars" else frame.assign)(**columns)

    def table(self) -> pd.DataFrame:
        """The forecast as a pandas frame with a time or a row number in front."""
        form = self.form.as_table()
        frame: pd.DataFrame = self.give(self.values, plain=True)
        if form.time is None and not form.long:
            frame.insert(0, "row", frame.index + 1)
        share = self.repaired.mean(axis=(1, 2))
        frame["repaired_share"] = np.repeat(share, len(frame) // len(share))
        return frame.assign(**self._bound_columns())

    def give(self, values: Array, *, plain: bool = False) -> Any:
        """Values `[S, H, C]` in the form of the data, or as a `plain` pandas frame."""
        form, columns = self.form.as_table() if plain else self.form, self.data.columns
        if self.data.target:  # the other channels were inputs only
            values = values[..., [columns.index(name) for name in self.data.target]]
            columns = self.data.target
        return form.give(values, series=self.series, columns=columns, times=self.times)

    def _bound_columns(self) -> dict[str, Array]:
        """The further columns of a frame by name."""
        channels = {"y", *self.form.channels, *self.data.columns}
        columns: dict[str, Array] = {}
        for suffix, values in self.bounds.items():
            frame = self.give(values, plain=True)
            names = [name for name in frame if name in channels]
            columns |= {f"{name}_{suffix}": frame[name].to_numpy() for name in names}
        return columns


def predict(predictor: Predictor, data: Any, *, max_repaired: float, **options: Any) -> Any:
    """`Predictor.predict` for forecasts."""
    if is_array(data) and data.ndim == 3:
        if any(options[name] for name in ("intervals", "quantiles", "horizon")):
            raise ArgumentError("windows [B, L, C] get plain forecasts: give rows [T, C].")
        return predictor.forecast(data, max_repaired=max_repaired)
    prediction = forecast_source(predictor, data, max_repaired=max_repaired, **options)
    warn(prediction.notes)
    answer = prediction.as_data()
    return answer.to(data.device) if isinstance(answer, Tensor) else answer


def tabulate(predictor: Predictor, data: Any, **options: Any) -> Answer:
    """What `Predictor.tabulate` gives."""
    prediction = forecast_source(predictor, data, **options)
    notes = (*prediction.notes, *prediction.details)
    if prediction.bounds and predictor.errors is not None:
        notes = (*notes, describe_intervals(predictor.errors))
    return Answer(prediction.table(), notes, prediction.data.understood, prediction)


def evaluate(predictor: Predictor, source: Any) -> Result:
    """Test the forecasts of a data set's test windows, or of every window of other data."""
    data, windows = prepare_evaluation(predictor, source)
    split = SplitWindows(windows, windows, windows)
    return get_task("forecasting").evaluate(predictor.trained, split, data)


def forecast_source(
    predictor: Predictor, source: Any, *, future_data: Any, **options: Any
) -> Forecast:
    """Read data and forecast what follows them; see `forecast_data`."""
    data = read_history(predictor, source, future_data, options.get("horizon"))
    return forecast_data(predictor, data, **options)


def forecast_data(
    predictor: Predictor,
    data: ForecastingData,
    *,
    intervals: Sequence[float] = (),
    quantiles: Sequence[float] = (),
    horizon: int | None = None,
    max_repaired: float = MAX_REPAIRED,
) -> Forecast:
    """Forecast the steps after the last row of every series; arguments as `Predictor.predict`.

    Raises:
        DataError: Every series is too short, or too much of its last rows is missing.
    """
    levels = bound_levels(predictor, intervals, quantiles)
    trained = predictor.shape.horizon
    horizon = trained if horizon is None else horizon
    if horizon < 1:
        raise ArgumentError(f"horizon must be at least 1, got {horizon}.")
    if levels and horizon > trained:
        raise ArgumentError(
            f"intervals are calibrated for the {trained} steps that the network was trained for, "
            f"not for {horizon}: ask for fewer steps, or train with horizon={horizon} (--horizon)."
        )
    window, notes = _last_window(predictor, data, horizon)
    shares = window.repaired.mean(axis=(1, 2))
    keep = shares <= max_repaired
    if not keep.any():
        raise refusal(data.name, float(shares.min()), max_repaired)
    left_out = [repr(name) for name, kept in zip(window.series, keep, strict=True) if not kept]
    if left_out:
        window = window.take(keep)
        notes.append(
            f"No forecast for series with more than {max_repaired:.0%} repaired or missing: "
            f"{_some(left_out)}."
        )
    details = []
    unknown = set(new_series(predictor.scaler, data)).intersection(window.series)
    if unknown and len(window.series) > 1:
        details.append(
            f"Not trained on, so scaled by their own rows: {_some(sorted(map(repr, unknown)))}."
        )
    for note, share in _note_repairs(window, data.columns):
        (notes if share > _SAID else details).append(note)
    if horizon > trained:
        notes.append(
            f"The network was trained for {trained} steps: later ones are forecast from the "
            "forecasts before them."
        )
    answer, values = _run(predictor, window, horizon)
    bounds = {
        suffix: _bound(predictor, window, answer, level)[:, :horizon]
        for suffix, level in levels.items()
    }
    times = None if window.times is None else window.times[:, :horizon]
    said = (*data.notes, *notes)
    return Forecast(
        data, window.series, values, times, bounds, window.repaired, said, tuple(details)
    )


def _bound(predictor: Predictor, window: Window, answer: Tensor, level: float) -> Array:
    """A quantile `[S, H, C]` of forecasts, in raw units."""
    assert predictor.errors is not None
    repaired = torch.from_numpy(window.repaired)
    moves = window_moves(window.scaled, predictor.shape.horizon, repaired)
    offset = predictor.errors.offset(level, moves=moves, shares=window.repaired.mean(axis=1))
    raw = (answer.double().numpy() + offset) * window.scaler.std + window.scaler.mean
    return predictor.limit(raw)


def forecast_values(
    predictor: Predictor, data: ForecastingData, *, max_repaired: float = MAX_REPAIRED
) -> Array:
    """Forecasts `[S, H, C]` of every series; NaN where too much of its last rows is missing."""
    window, _ = _last_window(predictor, data, predictor.shape.horizon)
    _, values = _run(predictor, window, predictor.shape.horizon)
    values[window.repaired.mean(axis=(1, 2)) > max_repaired] = np.nan
    return values


def _run(predictor: Predictor, window: Window, horizon: int) -> tuple[Tensor, Array]:
    """The first answer of the network, and forecasts `[S, horizon, C]` in raw units.

    Steps beyond those of the training are forecast from the forecasts before them.
    """
    length, trained = predictor.shape.input_len, predictor.shape.horizon
    if horizon > trained and predictor.plan.columns:
        raise ArgumentError(
            f"a network with covariates forecasts at most the {trained} steps that it was trained "
            "for: train with a longer horizon (--horizon)."
        )
    x, answers = window.scaled, []
    for start in range(0, horizon, trained):
        here = slice(start, start + length + trained)
        stamps = None if window.stamps is None else window.stamps[:, here]
        covariates = None if window.covariates is None else window.covariates[:, here]
        answers.append(predictor.run_forecast(x, stamps, covariates))
        x = torch.cat([x, answers[-1]], dim=1)[:, -length:]
    steps = torch.cat(answers, dim=1)[:, :horizon]
    return answers[0], predictor.limit(window.scaler.inverse(steps).numpy())


def prepare_evaluation(
    predictor: Predictor, source: Any
) -> tuple[ForecastingData, ForecastWindows]:
    """Data to test on, as measured, and their windows, without gaps in the inputs."""
    data = source
    if not isinstance(data, ForecastingData):
        data = read_history(predictor, source)
    data = choose_columns(data, predictor.shape.columns)
    prepared = predictor.strategy.prepare(data, window=predictor.shape.input_len)
    return data, evaluation_windows(predictor, prepared.data)


def evaluation_windows(predictor: Predictor, data: ForecastingData) -> ForecastWindows:
    """The test windows of data; all windows of data without a test part."""
    shape = predictor.shape
    if not len(data.splits.test):
        rows = range(len(data.values))
        data = replace(data, splits=replace(data.splits, train=rows[:0], val=rows[:0], test=rows))
    needed = shape.input_len + shape.horizon
    longest = max(map(len, window_ranges(data, "test", shape.input_len)), default=0)
    if longest < needed:
        raise DataError(f"{data.name} has {longest} rows but a window to test needs {needed}.")
    windows = forecasting_windows(
        data,
        input_len=shape.input_len,
        horizon=shape.horizon,
        stamps=shape.calendar_sizes is not None,
        scaler=predictor.scaler,
        plan=predictor.plan,
    )
    return windows.test


def bound_levels(
    predictor: Predictor, intervals: Sequence[float], quantiles: Sequence[float]
) -> dict[str, float]:
    """The level of each bound by the end of its column's name, such as `lower_80` or `q90`."""
    levels = {}
    for coverage in intervals:
        if not 0 < coverage < 1:
            raise ArgumentError(f"coverage must be between 0 and 1, got {coverage:g}.")
        name = f"{100 * coverage:g}"
        levels[f"lower_{name}"] = (1 - coverage) / 2
        levels[f"upper_{name}"] = (1 + coverage) / 2
    levels |= {f"q{100 * level:g}": level for level in quantiles}
    if levels and predictor.errors is None:
        raise ArgumentError("this run has no calibration for intervals: train it again.")
    return levels


def describe_intervals(errors: ErrorQuantiles) -> str:
    """Say where intervals come from."""
    parts = [
        f"{share:.0%} intervals enclosed {value:.1%}" for share, value in errors.measured.items()
    ]
    measured = f" Measured on later test windows: {', '.join(parts)}." if parts else ""
    return (
        f"Intervals are conformal, from {errors.source} of the run; wider where a window moves "
        f"further or values were repaired or missing.{measured}"
    )


class Window(NamedTuple):
    """The last rows of S series, as a network takes them, and F steps ahead of them."""

    series: list[str]
    scaled: Tensor  # [S, L, C], NaN where nothing was measured
    repaired: Array  # [S, L, C] bool: repaired or missing
    scaler: ChannelScaler
    times: Array | None  # [S, F] of the steps ahead
    stamps: Array | None  # [S, L + F, 4] calendar features
    covariates: Array | None  # [S, L + F, K]

    def take(self, keep: Array) -> Window:
        """The window without the series at which `keep` `[S]` is False."""
        scaler = self.scaler
        if scaler.mean.ndim == 3:  # one scale a series
            scaler = ChannelScaler(scaler.mean[keep], scaler.std[keep])
        names = [name for name, kept in zip(self.series, keep, strict=True) if kept]
        arrays: dict[str, Any] = {
            name: None if (value := getattr(self, name)) is None else value[keep]
            for name in ("scaled", "repaired", "times", "stamps", "covariates")
        }
        return self._replace(series=names, scaler=scaler, **arrays)


def _last_window(
    predictor: Predictor, data: ForecastingData, horizon: int
) -> tuple[Window, list[str]]:
    """The window that a forecast of each series starts from, and a note on series too short."""
    predictor.check_channels(data.channels, data.name)
    data = mark_broken_rules(predictor.strategy, data)
    shape, plan, notes = predictor.shape, predictor.plan, []
    length, ahead = shape.input_len, -(-horizon // shape.horizon) * shape.horizon
    last = data.last_rows(length)
    rows = {name: places for name, places in last.items() if len(places) == length}
    if not rows:
        name, places = next(iter(last.items()))
        where = f"series {name!r} of {data.name}" if len(last) > 1 else data.name
        raise DataError(
            f"{where} has {len(places)} rows but a forecast starts from the last {length}."
        )
    short = [f"{name!r} ({len(places)})" for name, places in last.items() if name not in rows]
    if short:
        notes.append(f"No forecast for series with fewer than {length} rows: {_some(short)}.")
    positions = np.stack(list(rows.values()))  # [S, L]
    times = stamps = covariates = None
    if data.timestamps is not None:
        past = data.timestamps[positions]
        times = np.stack(
            [future_timestamps(each, ahead, frequency=data.frequency) for each in past]
        )
    if shape.calendar_sizes is not None:
        if data.timestamps is None or times is None:
            raise DataError(
                f"{data.name} has no times, but the network was trained with calendar features."
            )
        both = np.concatenate([data.timestamps[positions], times], axis=1)
        stamps = np.stack([stamp_features(each) for each in both])
    if plan:
        check_roles(data, plan)
        after = [None] * len(rows) if times is None else list(times)
        steps = shape.horizon if plan.columns else ahead
        covariates = np.stack(
            [
                window_ahead(
                    data,
                    name,
                    plan,
                    rows=places,
                    times=None if later is None else later[:steps],
                    horizon=steps,
                )
                for (name, places), later in zip(rows.items(), after, strict=True)
            ]
        )
    values = np.array(data.values[positions], dtype=np.float32)
    if data.observed is not None:
        values[data.observed[positions] == 0] = np.nan
    scaler = cover_series(predictor.scaler, data, length).of_series(list(rows))
    scaled = predictor.scale(values, scaler)
    repaired = predictor.repaired(scaled).cpu().numpy()
    return Window(list(rows), scaled, repaired, scaler, times, stamps, covariates), notes


def _note_repairs(window: Window, columns: Sequence[str]) -> list[tuple[str, float]]:
    """Say what was repaired or missing in each series and channel, and which share that is."""
    notes = []
    missing = window.scaled.isnan().cpu().numpy()
    for series, repaired, gaps in zip(window.series, window.repaired, missing, strict=True):
        whose = f" of series {series!r}" if len(window.series) > 1 else ""
        for channel, name in enumerate(columns):
            count, absent = int(repaired[:, channel].sum()), int(gaps[:, channel].sum())
            counts = {"are missing": absent, "look broken": count - absent}
            what = " and ".join(f"{number} {kind}" for kind, number in counts.items() if number)
            if what:
                note = f"Of the last {len(repaired)} values of {name!r}{whose} {what}"
                share = count / len(repaired)
                notes.append((f"{note}; they were repaired before the forecast.", share))
    return notes


def _some(names: Sequence[str]) -> str:
    """The first of some names."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
