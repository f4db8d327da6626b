"""Forecasting with a trained network: what follows the end of a series, in its own units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from torch import Tensor

from sacm.backbones.adapters import at_level, take_median
from sacm.data.batches import ForecastWindows
from sacm.data.covariates import check_roles, future_timestamps, stamp_features, window_ahead
from sacm.data.datasets import ForecastingData, Segment, Splits
from sacm.data.scaling import ChannelScaler, new_series
from sacm.data.windows import SplitWindows, forecasting_windows, window_ranges
from sacm.errors import ArgumentError, DataError
from sacm.inference.history import History, choose_columns, read_history
from sacm.inference.predictor import Array, Predictor, refusal
from sacm.strategies.guard import mark_broken_rules
from sacm.tasks import Result, get_task
from sacm.tasks.calibration import MAX_REPAIRED, ErrorQuantiles, window_moves

if TYPE_CHECKING:
    import pandas as pd

_NAMED = 5  # series that a note names
_SAID = 0.1  # share of a channel's last values from which their repair is a warning


class Forecast(NamedTuple):
    """Forecasts of every series.

    Attributes:
        history: What they follow, without series that have no forecast.
        values: `[S, H, C]` in the units of the data.
        times: `[S, H]`; None where rows have none.
        bounds: Further columns by the end of their names, such as `lower_80`, like `values`.
        repaired: Which of each window's values were repaired or missing `[S, L, C]`.
        notes: What a user must know, one sentence each: given as warnings.
        details: What else there is to say: small repairs, series that the network has not seen.
    """

    history: History
    values: Array
    times: Array | None
    bounds: dict[str, Array]
    repaired: Array
    notes: tuple[str, ...]
    details: tuple[str, ...] = ()

    def as_data(self) -> Any:
        """The forecast in the form of the data; with bounds a frame has columns for them."""
        if self.bounds and self.history.form.kind in ("array", "tensor", "series"):
            return self.table()
        frame = self.give(self.values)
        for name, column in self._bound_columns(self.history):
            if hasattr(frame, "with_columns"):  # polars
                frame = frame.with_columns(**{name: column.to_numpy()})
            else:
                frame[name] = column.to_numpy()
        return frame

    def table(self) -> pd.DataFrame:
        """The forecast as a pandas frame with a time or a row number in front."""
        plain = self.history._replace(form=self.history.form.as_table())
        frame: pd.DataFrame = plain.give(self.values, self.times)
        if plain.form.time is None and not plain.form.long:
            frame.insert(0, "row", frame.index + 1)
        share = self.repaired.mean(axis=(1, 2))
        frame["repaired_share"] = np.repeat(share, len(frame) // len(share))
        for name, column in self._bound_columns(plain):
            frame[name] = column.to_numpy()
        return frame

    def give(self, values: Array) -> Any:
        """Values `[S, H, C]` in the form of the data."""
        return self.history.give(values, self.times)

    def _bound_columns(self, history: History) -> list[tuple[str, Any]]:
        """Names and values of the further columns of a frame."""
        plain = history._replace(form=history.form.as_table())
        channels = {"y", *history.form.channels, *history.data.columns}
        found = []
        for suffix, values in self.bounds.items():
            frame = plain.give(values, self.times)
            found += [(f"{name}_{suffix}", frame[name]) for name in frame if name in channels]
        return found


def forecast_source(predictor: Predictor, source: Any, **options: Any) -> Forecast:
    """Read data and forecast what follows them; see `forecast_history`."""
    horizon = options.get("horizon") or predictor.shape.horizon
    history = read_history(predictor, source, options.pop("future_data", None), horizon)
    return forecast_history(predictor, history, **options)


def forecast_history(
    predictor: Predictor,
    history: History,
    *,
    intervals: Sequence[float] = (),
    quantiles: Sequence[float] = (),
    horizon: int | None = None,
    max_repaired: float = MAX_REPAIRED,
) -> Forecast:
    """Forecast the steps after the last row of every series; arguments as `Predictor.predict`.

    Raises:
        ArgumentError: The number of channels is another, or the network has no such intervals.
        DataError: Every series is too short, or too much of its last rows is missing.
        SACMError: A forecast is not finite.
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
    data, notes = _leave_out_short(history.data, predictor.shape.input_len)
    predictor.check_channels(data.channels, data.name)
    notes = (*history.data.notes, *notes)
    details = _note_new(predictor, data)
    window = _last_window(predictor, data)
    data, window, more = _leave_out_repaired(data, window, max_repaired)
    repairs = _note_repairs(window, data.columns)
    notes = (*notes, *more, *(note for note, share in repairs if share > _SAID))
    details = (*details, *(note for note, share in repairs if share <= _SAID))
    answer = predictor.run_forecast(window.scaled, window.stamps, window.covariates)
    values = window.scaler.inverse(take_median(answer)).numpy()
    bounds = {}
    for suffix, level in levels.items():
        assert predictor.errors is not None
        offset = predictor.errors.offset(level, moves=window.moves, shares=window.shares)
        scaled = at_level(answer, predictor.settings.train_quantiles, level).double().numpy()
        bounds[suffix] = (scaled + offset) * window.scaler.std + window.scaler.mean
        bounds[suffix] = bounds[suffix][:, :horizon]
    values, times = values[:, :horizon], window.times
    if horizon > trained:
        values, times = _continue(predictor, data, window, values, horizon)
        notes = (
            *notes,
            f"The network was trained for {trained} steps: later ones are forecast from the "
            "forecasts before them.",
        )
    times = None if times is None else times[:, :horizon]
    values = predictor.limit(values)
    bounds = {name: predictor.limit(bound) for name, bound in bounds.items()}
    history = history._replace(data=data)
    return Forecast(history, values, times, bounds, window.repaired, notes, details)


def forecast_values(
    predictor: Predictor, data: ForecastingData, *, max_repaired: float = MAX_REPAIRED
) -> Array:
    """Forecasts `[S, H, C]` of every series; NaN where too much of its last rows is missing."""
    predictor.check_channels(data.channels, data.name)
    window = _last_window(predictor, data)
    answer = predictor.run_forecast(window.scaled, window.stamps, window.covariates)
    values: Array = window.scaler.inverse(take_median(answer)).numpy()
    values[window.repaired.mean(axis=(1, 2)) > max_repaired] = np.nan
    return predictor.limit(values)


def evaluate_forecasts(predictor: Predictor, source: Any) -> Result:
    """Test the forecasts of a data set's test windows, or of every window of other data."""
    data, windows = prepare_evaluation(predictor, source)
    return get_task("forecasting").evaluate(
        predictor.network,
        SplitWindows(windows, windows, windows),
        data,
        predictor.settings,
        predictor.strategy,
    )


def prepare_evaluation(
    predictor: Predictor, source: Any
) -> tuple[ForecastingData, ForecastWindows]:
    """Data to test on, as measured, and their windows, without gaps in the inputs."""
    data = source
    if not isinstance(data, ForecastingData):
        data = read_history(predictor, source).data
    data = choose_columns(data, predictor.shape.columns)
    prepared = predictor.strategy.prepare(data, window=predictor.shape.input_len)
    return data, evaluation_windows(predictor, prepared.data)


def bound_levels(
    predictor: Predictor, intervals: Sequence[float], quantiles: Sequence[float]
) -> dict[str, float]:
    """The level of each bound by the end of its column's name, such as `lower_80` or `q90`.

    Raises:
        ArgumentError: A share is not between 0 and 1, or the run has no calibration.
    """
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
    made = "conformal" if errors.usual.any() else "learnt quantiles, made conformal"
    moves = "a window moves further or " if errors.usual.any() else ""
    found = [
        f"{share:.0%} intervals enclosed {value:.1%}" for share, value in errors.measured.items()
    ]
    measured = f" Measured on later test windows: {', '.join(found)}." if found else ""
    return (
        f"Intervals are {made}, from {errors.source} of the run; wider where {moves}values were "
        f"repaired or missing.{measured}"
    )


def evaluation_windows(predictor: Predictor, data: ForecastingData) -> ForecastWindows:
    """The test windows of data; all windows of data without a test part.

    Raises:
        DataError: No window fits.
    """
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


class Window(NamedTuple):
    """The last rows of S series, as a network takes them."""

    series: list[str]
    scaled: Tensor  # [S, L, C], NaN where nothing was measured
    repaired: Array  # [S, L, C] bool: repaired or missing
    scaler: ChannelScaler
    times: Array | None  # [S, H] of the steps ahead
    stamps: Array | None  # [S, L + H, 4] calendar features
    covariates: Array | None  # [S, L + H, K]
    moves: Array  # [S, C]

    @property
    def shares(self) -> Array:
        """The share of each channel's values that was repaired or missing `[S, C]`."""
        shares: Array = self.repaired.mean(axis=1)
        return shares


def _last_window(
    predictor: Predictor, data: ForecastingData, scaler: ChannelScaler | None = None
) -> Window:
    """The window that a forecast of each series starts from."""
    data = mark_broken_rules(predictor.strategy, data)
    shape, plan = predictor.shape, predictor.plan
    rows = data.last_rows(shape.input_len)
    for name, positions in rows.items():
        if len(positions) < shape.input_len:
            where = f"series {name!r} of {data.name}" if len(rows) > 1 else data.name
            raise DataError(
                f"{where} has {len(positions)} rows but a forecast starts from the last "
                f"{shape.input_len}."
            )
    positions = np.stack(list(rows.values()))  # [S, L]
    times = stamps = covariates = None
    if data.timestamps is not None:
        known = data.timestamps[positions]
        times = np.stack(
            [future_timestamps(each, shape.horizon, frequency=data.frequency) for each in known]
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
        ahead = [None] * len(rows) if times is None else list(times)
        covariates = np.stack(
            [
                window_ahead(data, name, plan, rows=own, times=after, horizon=shape.horizon)
                for (name, own), after in zip(rows.items(), ahead, strict=True)
            ]
        )
    values = np.array(data.values[positions], dtype=np.float32)
    if data.observed is not None:
        values[data.observed[positions] == 0] = np.nan
    scaler = scaler or predictor.scaler_of_series(data)
    scaled = predictor.scale(values, scaler)
    repaired = predictor.repaired(scaled)
    moves = window_moves(scaled, shape.horizon, repaired)
    return Window(
        list(rows), scaled, repaired.cpu().numpy(), scaler, times, stamps, covariates, moves
    )


def _continue(
    predictor: Predictor, data: ForecastingData, window: Window, values: Array, horizon: int
) -> tuple[Array, Array | None]:
    """Go on from forecasts `[S, H, C]` until there are `horizon` steps."""
    if predictor.plan.columns:
        raise ArgumentError(
            f"a network with covariates forecasts at most the {predictor.shape.horizon} steps that "
            "it was trained for: train with a longer horizon (--horizon)."
        )
    length, times = predictor.shape.input_len, window.times
    past = [data.values[rows] for rows in data.last_rows(length).values()]
    stamps = data.timestamps
    known = None if stamps is None else [stamps[own] for own in data.last_rows(length).values()]
    while values.shape[1] < horizon:
        rows = [np.concatenate([own, new]) for own, new in zip(past, values, strict=True)]
        ends = np.cumsum([0, *map(len, rows)])
        segments = [
            Segment(name, int(start), int(stop))
            for name, start, stop in zip(window.series, ends[:-1], ends[1:], strict=True)
        ]
        every = None
        if known is not None and times is not None:
            every = np.concatenate([t for pair in zip(known, times, strict=True) for t in pair])
        longer = replace(
            data,
            values=np.concatenate(rows).astype(np.float32),
            timestamps=every,
            segments=tuple(segments),
            splits=Splits(range(ends[-1]), range(0), range(0)),
            targets=None,
            observed=None,
            broken=None,
        )
        following = _last_window(predictor, longer, window.scaler)
        answer = predictor.run_forecast(following.scaled, following.stamps, following.covariates)
        more = window.scaler.inverse(take_median(answer)).numpy()
        values = np.concatenate([values, more], axis=1)
        if times is not None and following.times is not None:
            times = np.concatenate([times, following.times], axis=1)
    return values[:, :horizon], times


def _leave_out_short(data: ForecastingData, count: int) -> tuple[ForecastingData, tuple[str, ...]]:
    """The series that have `count` rows, and a note on the others; all of them if none has."""
    lengths = {name: len(rows) for name, rows in data.last_rows(len(data.values)).items()}
    short = [f"{name!r} ({rows})" for name, rows in lengths.items() if rows < count]
    if not short or len(short) == len(lengths):
        return data, ()
    kept = tuple(each for each in data.segments if lengths[each.name] >= count)
    note = f"No forecast for series with fewer than {count} rows: {_some(short)}."
    return replace(data, segments=kept), (note,)


def _leave_out_repaired(
    data: ForecastingData, window: Window, most: float
) -> tuple[ForecastingData, Window, tuple[str, ...]]:
    """The series of whose window not too much is missing; refused if there is none."""
    shares = window.repaired.mean(axis=(1, 2))
    keep = shares <= most
    if keep.all():
        return data, window, ()
    if not keep.any():
        raise refusal(data.name, float(shares.min()), most)
    names = [name for name, kept in zip(window.series, keep, strict=True) if kept]
    left = [repr(name) for name in window.series if name not in names]
    note = f"No forecast for series with more than {most:.0%} repaired or missing: {_some(left)}."
    kept = tuple(each for each in data.segments if each.name in names)
    scaler = window.scaler
    if len(scaler.mean) == len(keep) and scaler.mean.ndim == 3:
        scaler = ChannelScaler(scaler.mean[keep], scaler.std[keep])
    arrays: dict[str, Any] = {
        name: None if (value := getattr(window, name)) is None else value[keep]
        for name in ("scaled", "repaired", "times", "stamps", "covariates", "moves")
    }
    return (
        replace(data, segments=kept),
        window._replace(series=names, scaler=scaler, **arrays),
        (note,),
    )


def _note_new(predictor: Predictor, data: ForecastingData) -> tuple[str, ...]:
    """Say which series the network has not seen, if every series has a scale of its own."""
    names = [repr(name) for name in new_series(predictor.scaler, data)]
    alone = len(data.last_rows(1)) == 1
    if not names or alone:
        return ()
    return (f"Not trained on, so scaled by their own rows: {_some(names)}.",)


def _note_repairs(window: Window, columns: Sequence[str]) -> list[tuple[str, float]]:
    """Say what was repaired or missing in each series and channel, and which share that is."""
    notes = []
    missing = window.scaled.isnan().cpu().numpy()
    for series, repaired, gaps in zip(window.series, window.repaired, missing, strict=True):
        whose = f" of series {series!r}" if len(window.series) > 1 else ""
        for channel, name in enumerate(columns):
            count, absent = int(repaired[:, channel].sum()), int(gaps[:, channel].sum())
            if count:
                what = f"{absent} are missing" if absent else ""
                if count > absent:
                    broken = f"{count - absent} look broken"
                    what = f"{what} and {broken}" if what else broken
                note = f"Of the last {len(repaired)} values of {name!r}{whose} {what}"
                share = count / len(repaired)
                notes.append((f"{note}; they were repaired before the forecast.", share))
    return notes


def _some(names: Sequence[str]) -> str:
    """The first of some names."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
