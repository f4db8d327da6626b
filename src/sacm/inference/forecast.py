"""Forecasting with a trained network: what follows the end of a series, in its own units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from sacm.data.batches import ForecastWindows
from sacm.data.covariates import (
    ROLES,
    check_roles,
    future_timestamps,
    roles_of,
    stamp_features,
    window_ahead,
)
from sacm.data.datasets import ForecastingData, Form, Segment, Splits
from sacm.data.scaling import ChannelScaler, cover_series, new_series
from sacm.data.windows import SplitWindows, forecasting_windows, window_ranges
from sacm.errors import ArgumentError, DataError, list_names
from sacm.inference.predictor import Answer, Array, Predictor, as_tensor, check_finite, warn
from sacm.settings import ReadOptions
from sacm.strategies.guard import mark_broken_rules
from sacm.tasks import Result, get_task
from sacm.tasks.base import check_trained_columns
from sacm.tasks.calibration import MAX_REPAIRED, window_moves

if TYPE_CHECKING:
    import pandas as pd


class Forecast(NamedTuple):
    """Forecasts of S series."""

    data: ForecastingData  # what they follow
    series: list[str]  # names of the series that have a forecast
    values: Array  # [S, H, C] in the units of the data
    times: Array | None  # [S, H]; None where rows have none
    bounds: dict[str, Array]  # like `values`, by the end of a column's name, such as `lower_80`
    repaired: Array  # [S, L, C]: which of each window's values were repaired or missing
    notes: tuple[str, ...]  # what a user should know

    @property
    def form(self) -> Form:
        """The form that the data came in; that of a pandas table for a data set."""
        if self.data.form is not None:
            return self.data.form
        long, columns = len(self.data.last_rows(1)) > 1, self.data.columns
        time = None if self.data.timestamps is None else "ds" if long else "date"
        return Form("pandas", long=long, time=time, channels=columns, rows=len(self.data.values))

    def as_data(self) -> Any:
        """The forecast in the form of the data; with bounds a frame has columns for them."""
        if not self.bounds:
            return self.give(self.values)
        framed = self.form.kind == "pandas"
        return self._add_bounds(self.give(self.values)) if framed else self.table()

    def table(self) -> pd.DataFrame:
        """The forecast as a pandas frame with a time or a row number in front."""
        form = self.form.as_table()
        frame: pd.DataFrame = self.give(self.values, plain=True)
        if form.time is None and not form.long:
            frame.insert(0, "row", frame.index + 1)
        share = self.repaired.mean(axis=(1, 2))
        frame["repaired_share"] = np.repeat(share, len(frame) // len(share))
        return self._add_bounds(frame)

    def give(self, values: Array, *, plain: bool = False) -> Any:
        """Values `[S, H, C]` in the form of the data, or as a `plain` pandas frame."""
        form, columns = self.form.as_table() if plain else self.form, self.data.columns
        if self.data.target:  # the other channels were inputs only
            values = values[..., [columns.index(name) for name in self.data.target]]
            columns = self.data.target
        return form.give(values, series=self.series, columns=columns, times=self.times)

    def _add_bounds(self, frame: pd.DataFrame) -> pd.DataFrame:
        channels = {"y", *self.form.channels, *self.data.columns}
        for suffix, values in self.bounds.items():
            bound = self.give(values, plain=True)
            for name in filter(channels.__contains__, bound):
                frame[f"{name}_{suffix}"] = bound[name].to_numpy()
        return frame


def predict(predictor: Predictor, data: Any, **options: Any) -> Any:
    """`Predictor.predict` for forecasts."""
    windows = isinstance(data, np.ndarray | Tensor) and data.ndim == 3
    if windows and (options["intervals"] or options["quantiles"]):
        raise ArgumentError("windows [B, L, C] get forecasts without intervals: give rows [T, C].")
    forecast = forecast_data(predictor, data, **options)
    warn(forecast.notes)
    answer = forecast.values if windows else forecast.as_data()
    return torch.as_tensor(answer, device=data.device) if isinstance(data, Tensor) else answer


def tabulate(predictor: Predictor, data: Any, **options: Any) -> Answer:
    """`Predictor.tabulate` for forecasts."""
    forecast = forecast_data(predictor, data, **options)
    notes = forecast.notes
    if forecast.bounds:
        source = f"{predictor.errors.source} of the run"
        wider = "wider where a window moves further or values were repaired or missing"
        notes += (f"Intervals are conformal, from {source}; {wider}.",)
    return Answer(forecast.table(), notes, forecast.data.understood, forecast)


def evaluate(predictor: Predictor, source: Any) -> Result:
    """Test the forecasts of a data set's test windows, or of every window of other data."""
    data, windows = prepare_evaluation(predictor, source)
    split = SplitWindows(windows, windows, windows)
    return get_task("forecasting").evaluate(predictor.trained, split, data)


def prepare_evaluation(
    predictor: Predictor, source: Any
) -> tuple[ForecastingData, ForecastWindows]:
    """Data to test on, as measured, and their test windows; all without a test part."""
    shape = predictor.shape
    data = read_history(predictor, source)
    prepared = predictor.strategy.prepare(data, window=shape.input_len).data
    if not len(prepared.splits.test):
        rows = range(len(prepared.values))
        prepared = replace(prepared, splits=Splits(rows[:0], rows[:0], rows))
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
        shorter=(1, 1),  # of these none is used
    )
    return data, windows.test


def read_series(
    source: Any, options: Mapping[str, Any], *, trained: Sequence[str] | None = None
) -> ForecastingData:
    """Read a series; the columns that were `trained` on are its channels where they are there."""
    if isinstance(source, ForecastingData):
        return source
    from sacm.data.forecasting import series_data
    from sacm.data.read import keep_present, load_source, read_table

    given = dict(options)
    roles = roles_of({role: given.pop(role, None) for role in ROLES})
    chosen = ReadOptions.of(given)
    name = str(source) if isinstance(source, str | Path) else "data"
    loaded, join = load_source(source, chosen, name=name), True
    if trained is not None:
        chosen = keep_present(loaded, chosen)
        columns: Any = () if isinstance(loaded.content, np.ndarray) else loaded.content.columns
        words = set(chosen.category or ())
        if {each for each in trained if each.partition("=")[0] not in words} <= set(columns):
            chosen = chosen.model_copy(update={"columns": tuple(trained)})
            join = False
    table = read_table(loaded, chosen, also=(*roles["past"], *roles["future"]))
    return series_data(table, chosen, roles=roles, join=join)


def read_history(predictor: Predictor, source: Any) -> ForecastingData:
    """Read data to forecast from, with the columns and the time step that were trained on."""
    shape = predictor.shape
    if isinstance(source, np.ndarray | Tensor):
        data = _from_array(predictor, source)
    else:
        from sacm.data.forecasting import ALL_ROWS

        options = {**predictor.settings.reading(), "split": ALL_ROWS}
        data = read_series(source, options, trained=shape.columns)
        nameless = data.form is not None and data.form.kind in ("array", "tensor")
        if shape.columns is not None and not nameless and shape.columns != data.columns:
            if not set(shape.columns) <= set(data.columns):
                check_trained_columns(data.name, data.columns, shape.columns)
            data = data.take([data.columns.index(name) for name in shape.columns])
    check_roles(data, roles_of(predictor.settings.covariates()))
    if data.timestamps is None or shape.frequency in (None, data.frequency):
        return data
    import pandas as pd

    # Five weekdays in a row look daily: what lies on the trained grid has its step.
    stamps = data.timestamps[next(iter(data.last_rows(len(data.values)).values()))]
    grid = pd.date_range(stamps[0], periods=len(stamps), freq=shape.frequency)
    if not np.array_equal(grid.to_numpy().astype(stamps.dtype), stamps):
        steps = f"a time step of {data.frequency!r} but {shape.frequency!r} was trained on"
        raise DataError(f"{data.name} has {steps}: resample it.")
    return replace(data, frequency=shape.frequency)


def _from_array(predictor: Predictor, rows: Any) -> ForecastingData:
    """Rows `[T, C]` or `[T]`, or windows `[B, L, C]` as a series each; no pandas is needed."""
    values, segments = as_tensor(rows).cpu().numpy(), tuple[Segment, ...]()
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim not in (2, 3) or not len(values):
        raise ArgumentError(f"rows are [T, C] or [T], windows [B, L, C]; got {list(rows.shape)}.")
    if values.ndim == 3:
        count, length, channels = values.shape
        names = [f"window {place + 1}" for place in range(count)]
        segments = tuple(Segment(n, k * length, (k + 1) * length) for k, n in enumerate(names))
        values = values.reshape(-1, channels)
    columns = predictor.shape.columns or ()
    if len(columns) != values.shape[1]:
        columns = tuple(map(str, range(values.shape[1])))
    splits = Splits(range(len(values)), range(0), range(0))
    form = Form("array" if isinstance(rows, np.ndarray) else "tensor", flat=rows.ndim == 1)
    return ForecastingData("data", values, columns, splits, segments=segments, form=form)


def forecast_data(
    predictor: Predictor,
    source: Any,
    *,
    intervals: Sequence[float] = (),
    quantiles: Sequence[float] = (),
    horizon: int | None = None,
    max_repaired: float = MAX_REPAIRED,
) -> Forecast:
    """Forecast the steps after the last row of every series; arguments as `Predictor.predict`."""
    trained = predictor.shape.horizon
    horizon = trained if horizon is None else horizon
    if horizon < 1:
        raise ArgumentError(f"horizon must be at least 1, got {horizon}.")
    levels = _bound_levels(predictor, intervals, quantiles, horizon)
    data = read_history(predictor, source)
    start = _find_start(predictor, data, max_repaired)
    notes, names = [*data.notes, *start.notes, *_note_repairs(start, data.columns)], [*start.rows]
    unknown = [repr(name) for name in new_series(predictor.scaler, data) if name in names]
    if unknown and len(names) > 1:
        notes.append(f"Not trained on, so scaled by their own rows: {list_names(unknown)}.")
    if horizon > trained:
        later = "later ones are forecast from the forecasts before them"
        notes.append(f"The network was trained for {trained} steps: {later}.")
    scaled, times = _run(predictor, data, start, horizon)
    bounds, scaler = {}, start.scaler
    lowest = np.array(predictor.shape.minimum, dtype=float)  # [C] or []; NaN is no limit
    if levels:
        moves = window_moves(start.scaled, trained, torch.from_numpy(start.repaired))
        shares = start.repaired.mean(axis=1)
        for suffix, level in levels.items():
            offset = predictor.errors.offset(level, moves=moves, shares=shares)[:, :horizon]
            bound = (scaled.double().numpy() + offset) * scaler.std + scaler.mean
            bounds[suffix] = np.fmax(bound, lowest)
    values = np.fmax(scaler.inverse(scaled).numpy(), lowest).astype(np.float32)
    return Forecast(data, names, values, times, bounds, start.repaired, tuple(notes))


def _bound_levels(
    predictor: Predictor, intervals: Sequence[float], quantiles: Sequence[float], horizon: int
) -> dict[str, float]:
    """The level of each bound by the end of its column's name, such as `lower_80` or `q90`."""
    levels, trained = {}, predictor.shape.horizon
    for coverage in intervals:
        if not 0 < coverage < 1:
            raise ArgumentError(f"coverage must be between 0 and 1, got {coverage:g}.")
        levels[f"lower_{100 * coverage:g}"] = (1 - coverage) / 2
        levels[f"upper_{100 * coverage:g}"] = (1 + coverage) / 2
    levels |= {f"q{100 * level:g}": level for level in quantiles}
    if levels and horizon > trained:
        what = (
            f"intervals are calibrated for the {trained} steps of the training, not for {horizon}"
        )
        raise ArgumentError(f"{what}: ask for fewer, or train with a longer horizon (--horizon).")
    return levels


class _Start(NamedTuple):
    """The last L rows of S series, which their forecasts start from."""

    rows: dict[str, Array]  # positions [L] by series
    scaled: Tensor  # [S, L, C], NaN where nothing was measured
    repaired: Array  # [S, L, C] bool: repaired or missing
    scaler: ChannelScaler
    notes: list[str]  # on series that have no forecast


def _find_start(predictor: Predictor, data: ForecastingData, max_repaired: float) -> _Start:
    """The window that a forecast of each series starts from."""
    predictor.check_channels(data.channels, data.name)
    data = mark_broken_rules(predictor.strategy, data)
    length, notes = predictor.shape.input_len, []
    last = data.last_rows(length)
    rows = {name: places for name, places in last.items() if len(places) == length}
    if not rows:
        name, places = next(iter(last.items()))
        found = f"{name if len(last) > 1 else data.name} has {len(places)} rows"
        raise DataError(f"{found} but a forecast starts from the last {length}.")
    short = [f"{name!r} ({len(places)})" for name, places in last.items() if name not in rows]
    if short:
        notes.append(f"No forecast for series with fewer than {length} rows: {list_names(short)}.")
    positions = np.stack(list(rows.values()))  # [S, L]
    values = np.array(data.values[positions], dtype=np.float32)
    if data.observed is not None:
        values[data.observed[positions] == 0] = np.nan
    scaler = cover_series(predictor.scaler, data, length)
    scaled = scaler.of_series(list(rows)).transform(torch.from_numpy(values))
    repaired, flags = scaled.isnan().numpy(), predictor.strategy.flags(scaled)
    if flags is not None:
        repaired = repaired | (flags.cpu().numpy() > 0)
    shares = dict(zip(rows, repaired.mean(axis=(1, 2)), strict=True))
    left_out = [name for name, share in shares.items() if share > max_repaired]
    windows = data.form is not None and data.form.kind in ("array", "tensor")
    if left_out and (windows or len(left_out) == len(rows)):
        raise DataError(
            f"{left_out[0] if len(rows) > 1 else data.name}: {shares[left_out[0]]:.0%} of the "
            f"values that a forecast starts from were repaired or missing, more than "
            f"{max_repaired:.0%}: give better rows, or allow more with max_repaired= "
            "(--max-repaired)."
        )
    if left_out:
        named = list_names([repr(name) for name in left_out])
        said = f"more than {max_repaired:.0%} repaired or missing"
        notes.append(f"No forecast for series with {said}: {named}.")
        kept = [name not in left_out for name in rows]
        scaled, repaired = scaled[kept], repaired[kept]
        rows = {name: places for name, places in rows.items() if name not in left_out}
    return _Start(rows, scaled, repaired, scaler.of_series(list(rows)), notes)


def _run(
    predictor: Predictor, data: ForecastingData, start: _Start, horizon: int
) -> tuple[Tensor, Array | None]:
    """Scaled forecasts `[S, horizon, C]`, later ones from those before them, and their times."""
    shape, rows = predictor.shape, start.rows
    length, trained = shape.input_len, shape.horizon
    if horizon > trained and data.covariates is not None:
        what = f"a network with covariates forecasts at most the {trained} steps of its training"
        raise ArgumentError(f"{what}: train with a longer horizon (--horizon).")
    steps = -(-horizon // trained) * trained  # of whole forecasts
    times, beside = None, list[Tensor | None]()  # calendar features and covariates [S, L + F, K]
    if data.timestamps is not None:
        past = data.timestamps[np.stack(list(rows.values()))]
        following = [future_timestamps(each, steps, data.frequency) for each in past]
        times = np.stack(following)
    if shape.calendar_sizes is not None:
        if times is None:
            raise DataError(
                "there are no times, but the network was trained with calendar features."
            )
        stamps = [stamp_features(each) for each in np.concatenate([past, times], axis=1)]
        beside.append(as_tensor(np.stack(stamps)))
    if data.covariates is not None:
        later = [None] * len(rows) if times is None else list(times)
        windows = [
            window_ahead(data, name, rows=rows[name], times=ahead, horizon=steps)
            for name, ahead in zip(rows, later, strict=True)
        ]
        beside = [*(beside or [None]), as_tensor(np.stack(windows))]
    x, answers = start.scaled, []
    for first in range(0, horizon, trained):
        here = slice(first, first + length + trained)
        others = [None if each is None else each[:, here] for each in beside]
        answers.append(predictor.run(x, *others))
        check_finite(answers[-1], "the forecast of window {} is not finite")
        x = torch.cat([x, answers[-1]], dim=1)[:, -length:]
    return torch.cat(answers, dim=1)[:, :horizon], None if times is None else times[:, :horizon]


def _note_repairs(start: _Start, columns: Sequence[str]) -> list[str]:
    """Say how many of the last values were repaired or missing, and in which channels."""
    missing, touched = int(start.scaled.isnan().sum()), start.repaired.sum(axis=(0, 1))
    counts = {"are missing": missing, "look broken": int(start.repaired.sum()) - missing}
    what = " and ".join(f"{number:,} {kind}" for kind, number in counts.items() if number)
    names = list_names(
        [repr(name) for name, flagged in zip(columns, touched, strict=True) if flagged]
    )
    said = f"Of the last {start.repaired[..., 0].size:,} values of {names} {what}"
    return [f"{said}; they were repaired before the forecast."] if what else []
