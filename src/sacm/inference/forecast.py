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
from sacm.inference.history import choose_columns, form_of, read_history, refuse_covariates
from sacm.inference.predictor import (
    Answer,
    Array,
    Predictor,
    as_tensor,
    check_finite,
    is_array,
    like,
    warn,
)
from sacm.strategies.guard import mark_broken_rules
from sacm.tasks import Result, get_task
from sacm.tasks.calibration import MAX_REPAIRED, window_moves

if TYPE_CHECKING:
    import pandas as pd

_NAMED = 5  # series that a note names
_SAID = 0.1  # share of a channel's last values from which their repair is a warning


class Forecast(NamedTuple):
    """Forecasts of S series."""

    data: ForecastingData  # what they follow
    series: list[str]  # names of the series that have a forecast
    values: Array  # [S, H, C] in the units of the data
    times: Array | None  # [S, H]; None where rows have none
    bounds: dict[str, Array]  # like `values`, by the end of a column's name, such as `lower_80`
    repaired: Array  # [S, L, C]: which of each window's values were repaired or missing
    notes: tuple[str, ...]  # what a user must know: given as warnings
    details: tuple[str, ...]  # what else there is to say: small repairs, unknown series

    @property
    def form(self) -> Form:
        """The form that the data came in."""
        return form_of(self.data)

    def as_data(self) -> Any:
        """The forecast in the form of the data; with bounds a frame has columns for them."""
        if self.bounds and self.form.kind in ("array", "tensor", "series"):
            return self.table()
        answer, columns = self.give(self.values), self._bound_columns()
        if not columns:
            return answer
        return (answer.with_columns if self.form.kind == "polars" else answer.assign)(**columns)

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
        if options["intervals"] or options["quantiles"] or options["horizon"]:
            raise ArgumentError("windows [B, L, C] get plain forecasts: give rows [T, C].")
        return like(torch.from_numpy(_forecast_windows(predictor, data, max_repaired)), data)
    forecast = forecast_data(predictor, data, max_repaired=max_repaired, **options)
    warn(forecast.notes)
    answer = forecast.as_data()
    return answer.to(data.device) if isinstance(answer, Tensor) else answer


def tabulate(predictor: Predictor, data: Any, **options: Any) -> Answer:
    """`Predictor.tabulate` for forecasts."""
    forecast = forecast_data(predictor, data, **options)
    notes, errors = (*forecast.notes, *forecast.details), predictor.errors
    if forecast.bounds and errors is not None:
        pairs = errors.measured.items()
        enclosed = ", ".join(
            f"{share:.0%} intervals enclosed {value:.1%}" for share, value in pairs
        )
        measured = f" Measured on later test windows: {enclosed}." if enclosed else ""
        notes += (
            f"Intervals are conformal, from {errors.source} of the run; wider where a window moves "
            f"further or values were repaired or missing.{measured}",
        )
    return Answer(forecast.table(), notes, forecast.data.understood, forecast)


def evaluate(predictor: Predictor, source: Any) -> Result:
    """Test the forecasts of a data set's test windows, or of every window of other data."""
    data, windows = prepare_evaluation(predictor, source)
    split = SplitWindows(windows, windows, windows)
    return get_task("forecasting").evaluate(predictor.trained, split, data)


def prepare_evaluation(
    predictor: Predictor, source: Any
) -> tuple[ForecastingData, ForecastWindows]:
    """Data to test on, as measured, and their test windows, without gaps in the inputs.

    Data without a test part are tested on all of their windows.
    """
    shape = predictor.shape
    data = source if isinstance(source, ForecastingData) else read_history(predictor, source)
    data = choose_columns(data, shape.columns)
    prepared = predictor.strategy.prepare(data, window=shape.input_len).data
    if not len(prepared.splits.test):
        rows = range(len(prepared.values))
        splits = replace(prepared.splits, train=rows[:0], val=rows[:0], test=rows)
        prepared = replace(prepared, splits=splits)
    needed = shape.input_len + shape.horizon
    longest = max(map(len, window_ranges(prepared, "test", shape.input_len)), default=0)
    if longest < needed:
        raise DataError(f"{data.name} has {longest} rows but a window to test needs {needed}.")
    windows = forecasting_windows(
        prepared,
        input_len=shape.input_len,
        horizon=shape.horizon,
        stamps=shape.calendar_sizes is not None,
        scaler=predictor.scaler,
        plan=predictor.plan,
    )
    return data, windows.test


def forecast_data(
    predictor: Predictor,
    source: Any,
    *,
    intervals: Sequence[float] = (),
    quantiles: Sequence[float] = (),
    horizon: int | None = None,
    future_data: Any = None,
    max_repaired: float = MAX_REPAIRED,
) -> Forecast:
    """Forecast the steps after the last row of every series; arguments as `Predictor.predict`."""
    trained = predictor.shape.horizon
    horizon = trained if horizon is None else horizon
    if horizon < 1:
        raise ArgumentError(f"horizon must be at least 1, got {horizon}.")
    levels = _bound_levels(predictor, intervals, quantiles, horizon)
    data = read_history(predictor, source, future_data, horizon)
    window, notes = _last_window(predictor, data, horizon, max_repaired)
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
    scaled = _run(predictor, window, horizon)
    bounds = {}
    if levels and predictor.errors is not None:
        moves = window_moves(window.scaled, trained, torch.from_numpy(window.repaired))
        shares, scaler = window.repaired.mean(axis=1), window.scaler
        for suffix, level in levels.items():
            offset = predictor.errors.offset(level, moves=moves, shares=shares)[:, :horizon]
            bound = (scaled.double().numpy() + offset) * scaler.std + scaler.mean
            bounds[suffix] = _limit(predictor, bound)
    times = None if window.times is None else window.times[:, :horizon]
    return Forecast(
        data=data,
        series=window.series,
        values=_limit(predictor, window.scaler.inverse(scaled).numpy()),
        times=times,
        bounds=bounds,
        repaired=window.repaired,
        notes=(*data.notes, *notes),
        details=tuple(details),
    )


def _bound_levels(
    predictor: Predictor, intervals: Sequence[float], quantiles: Sequence[float], horizon: int
) -> dict[str, float]:
    """The level of each bound by the end of its column's name, such as `lower_80` or `q90`."""
    levels, trained = {}, predictor.shape.horizon
    for coverage in intervals:
        if not 0 < coverage < 1:
            raise ArgumentError(f"coverage must be between 0 and 1, got {coverage:g}.")
        name = f"{100 * coverage:g}"
        levels[f"lower_{name}"] = (1 - coverage) / 2
        levels[f"upper_{name}"] = (1 + coverage) / 2
    levels |= {f"q{100 * level:g}": level for level in quantiles}
    if levels and predictor.errors is None:
        raise ArgumentError("this run has no calibration for intervals: train it again.")
    if levels and horizon > trained:
        raise ArgumentError(
            f"intervals are calibrated for the {trained} steps that the network was trained for, "
            f"not for {horizon}: ask for fewer steps, or train with horizon={horizon} (--horizon)."
        )
    return levels


class Window(NamedTuple):
    """The last rows of S series, as a network takes them, and F steps ahead of them."""

    series: list[str]
    scaled: Tensor  # [S, L, C], NaN where nothing was measured
    repaired: Array  # [S, L, C] bool: repaired or missing
    scaler: ChannelScaler
    times: Array | None = None  # [S, F] of the steps ahead
    stamps: Array | None = None  # [S, L + F, 4] calendar features, if the network takes some
    covariates: Array | None = None  # [S, L + F, K]


def _last_window(
    predictor: Predictor, data: ForecastingData, horizon: int, max_repaired: float
) -> tuple[Window, list[str]]:
    """The window that a forecast of each series starts from, and notes on series without one."""
    predictor.check_channels(data.channels, data.name)
    data = mark_broken_rules(predictor.strategy, data)
    length, notes = predictor.shape.input_len, []
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
    values = np.array(data.values[positions], dtype=np.float32)
    if data.observed is not None:
        values[data.observed[positions] == 0] = np.nan
    scaler = cover_series(predictor.scaler, data, length)
    scaled = predictor.scale(values, scaler.of_series(list(rows)))
    repaired = predictor.repaired(scaled).cpu().numpy()
    shares = repaired.mean(axis=(1, 2))
    keep = shares <= max_repaired
    if not keep.any():
        raise _refusal(data.name, float(shares.min()), max_repaired)
    if not keep.all():
        left_out = [repr(name) for name, kept in zip(rows, keep, strict=True) if not kept]
        notes.append(
            f"No forecast for series with more than {max_repaired:.0%} repaired or missing: "
            f"{_some(left_out)}."
        )
        scaled, repaired = scaled[keep], repaired[keep]
        rows = {
            name: places for (name, places), kept in zip(rows.items(), keep, strict=True) if kept
        }
    scaler = scaler.of_series(list(rows))
    return Window(
        list(rows), scaled, repaired, scaler, *_ahead(predictor, data, rows, horizon)
    ), notes


def _ahead(
    predictor: Predictor, data: ForecastingData, rows: dict[str, Array], horizon: int
) -> tuple[Array | None, Array | None, Array | None]:
    """Times of the steps ahead; calendar features and covariates of last rows and steps ahead."""
    shape, plan = predictor.shape, predictor.plan
    if horizon > shape.horizon and plan.columns:
        raise ArgumentError(
            f"a network with covariates forecasts at most the {shape.horizon} steps that it was "
            "trained for: train with a longer horizon (--horizon)."
        )
    steps = -(-horizon // shape.horizon) * shape.horizon  # of whole forecasts
    times = stamps = covariates = None
    if data.timestamps is not None:
        past = data.timestamps[np.stack(list(rows.values()))]
        following = [future_timestamps(each, steps, frequency=data.frequency) for each in past]
        times = np.stack(following)
        if shape.calendar_sizes is not None:
            both = np.concatenate([past, times], axis=1)
            stamps = np.stack([stamp_features(each) for each in both])
    if plan:
        check_roles(data, plan)
        later = [None] * len(rows) if times is None else list(times)
        covariates = np.stack(
            [
                window_ahead(data, name, plan, rows=rows[name], times=ahead, horizon=steps)
                for name, ahead in zip(rows, later, strict=True)
            ]
        )
    return times, stamps, covariates


def _run(predictor: Predictor, window: Window, horizon: int) -> Tensor:
    """Scaled forecasts `[S, horizon, C]`.

    Steps beyond those of the training are forecast from the forecasts before them.
    """
    length, trained = predictor.shape.input_len, predictor.shape.horizon
    if predictor.shape.calendar_sizes is not None and window.stamps is None:
        raise DataError(
            "the data have no times, but the network was trained with calendar features."
        )
    beside = [
        None if each is None else as_tensor(each) for each in (window.stamps, window.covariates)
    ]
    while beside and beside[-1] is None:  # most networks take the window alone
        beside.pop()
    x, answers = window.scaled, []
    for start in range(0, horizon, trained):
        here = slice(start, start + length + trained)
        others = [None if each is None else each[:, here] for each in beside]
        answers.append(predictor.run(predictor.network, x, *others))
        check_finite(answers[-1], "the forecast of window {} is not finite")
        x = torch.cat([x, answers[-1]], dim=1)[:, -length:]
    return torch.cat(answers, dim=1)[:, :horizon]


def _forecast_windows(predictor: Predictor, windows: Any, max_repaired: float) -> Array:
    """Forecasts `[B, H, C]` of windows `[B, L, C]`, both in raw units.

    Where every series has its own scale, each window is scaled by its own rows: an array names no
    series.
    """
    refuse_covariates(predictor)
    scaler = predictor.scaler
    if scaler.series:
        fitted = [ChannelScaler.fit([rows]) for rows in as_tensor(windows).cpu().numpy()]
        means, stds = ([getattr(each, name) for each in fitted] for name in ("mean", "std"))
        scaler = ChannelScaler(np.stack(means)[:, None], np.stack(stds)[:, None])
    scaled = predictor.scale(windows, scaler)
    repaired = predictor.repaired(scaled).cpu().numpy()
    for place, share in enumerate(repaired.mean(axis=(1, 2))):
        if share > max_repaired:
            raise _refusal(f"window {place + 1}", share, max_repaired)
    window = Window([], scaled, repaired, scaler)
    answer = _run(predictor, window, predictor.shape.horizon)
    return _limit(predictor, scaler.inverse(answer).numpy())


def _limit(predictor: Predictor, values: Array) -> Array:
    """Forecasts `[…, C]` in raw units, none below the minimum of its channel."""
    if predictor.shape.minimum is None:
        return values
    limits = [-np.inf if least is None else least for least in predictor.shape.minimum]
    limited: Array = np.maximum(values, np.array(limits, values.dtype))
    return limited


def _refusal(name: str, share: float, most: float) -> DataError:
    """The error for a window of which too much was repaired or missing."""
    return DataError(
        f"{name}: {share:.0%} of the values that a forecast starts from were repaired or missing, "
        f"more than {most:.0%}: give better rows, or allow more with max_repaired= "
        "(--max-repaired)."
    )


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
