"""Forecasts with intervals and quantiles, and how good these were on windows whose end is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sacm.data.batches import ForecastWindows
from sacm.data.datasets import ForecastingData
from sacm.data.load import resolve
from sacm.data.windows import forecasting_windows
from sacm.errors import ArgumentError, SACMError
from sacm.inference.adaptive import AdaptiveIntervals
from sacm.inference.answer import TableAnswer
from sacm.inference.calibration import (
    Calibration,
    calibrate,
    from_residuals,
    signed_residuals,
    spread_out,
)
from sacm.inference.forecast import (
    forecast_ahead,
    give,
    last_rows,
    leave_out_short,
    read_for,
    tabulate_reading,
)
from sacm.inference.history import SeriesReading
from sacm.inference.liveliness import window_moves
from sacm.inference.repairs import find_repairs
from sacm.inference.trained import Array, TrainedNetwork
from sacm.metrics.probabilistic import crps, measure_intervals

CRPS_LEVELS = tuple(round(0.05 * place, 2) for place in range(1, 20))


@dataclass(frozen=True)
class Levels:
    """Which bounds a user wants: shares to enclose, and quantiles."""

    coverages: tuple[float, ...] = ()
    quantiles: tuple[float, ...] = ()

    def columns(self) -> list[tuple[str, float]]:
        """Suffix of a column and level of its quantile, from low to high within each kind."""
        found = []
        for coverage in self.coverages:
            if not 0 < coverage < 1:
                raise ArgumentError(f"coverage must be between 0 and 1, got {coverage:g}.")
            name = f"{100 * coverage:g}"
            found.append((f"lower_{name}", (1 - coverage) / 2))
            found.append((f"upper_{name}", (1 + coverage) / 2))
        return found + [(f"q{100 * level:g}", level) for level in self.quantiles]


def calibration_windows(trained: TrainedNetwork, data: ForecastingData) -> ForecastWindows:
    """The test windows of data; without a test part, all windows of data that are new."""
    if not len(data.splits.test):
        rows = range(len(data.values))
        data = replace(data, splits=replace(data.splits, train=rows[:0], val=rows[:0], test=rows))
    shape = trained.shape
    windows = forecasting_windows(
        data,
        input_len=shape.input_len,
        horizon=shape.horizon,
        stamps=shape.calendar_sizes is not None,
        scaler=trained.scaler,
        plan=trained.plan,
    )
    return windows.test


class Calibrations:
    """Calibrations of one network, one for each quantile if it gives quantiles.

    Quantiles that a network learnt are moved by what its calibration windows show, as in conformal
    quantile regression (Romano, Patterson and Candès, "Conformalized quantile regression", NeurIPS
    2019); the forecast of other networks is moved to every level.
    """

    def __init__(self, trained: TrainedNetwork, windows: ForecastWindows, source: str) -> None:
        self.trained, self.windows, self.source = trained, windows, source
        self._made: dict[float | None, Calibration] = {}

    def at(self, level: float) -> Calibration:
        """The calibration of one quantile."""
        key = None if self.trained.settings.train_quantiles is None else level
        if key not in self._made:
            # Learnt quantiles are wider where they have to be by themselves.
            self._made[key] = calibrate(
                self.trained, self.windows, source=self.source, level=key, local=key is None
            )
        return self._made[key]


def calibrate_for(trained: TrainedNetwork, data: Any) -> Calibrations:
    """Calibrate on what the network was trained with, or on new data where that is not at hand.

    The test windows of the training data come after those that chose the epoch and chose nothing.

    Args:
        trained: A forecasting network.
        data: New data of the user, None if there are none.

    Raises:
        ArgumentError: Neither holds enough windows.
    """
    try:
        settings = trained.settings
        own: Any = resolve(settings.data, task="forecasting", reading=settings.reading())
        trained.shape.check_columns(own.name, own.columns)
    except SACMError:
        own = None
    if own is not None and len(own.splits.test):
        windows = calibration_windows(trained, own)
        return Calibrations(trained, windows, f"{len(windows):,} test windows of the run")
    new = None if data is None else read_for(trained, data).data
    if new is None or (own is not None and same_rows(own, new)):
        raise ArgumentError(
            "the data of the run are not at hand or have no test part, so there is nothing to "
            "calibrate on: name other rows with --data."
        )
    windows = calibration_windows(trained, new)
    source = f"{len(windows):,} windows of the new data, taken as unknown to the network"
    return Calibrations(trained, windows, source)


def same_rows(own: ForecastingData, new: ForecastingData) -> bool:
    """Whether new data are those that the network was trained on."""
    return own.values.shape == new.values.shape and np.array_equal(own.values, new.values)


def tabulate_bounds(
    trained: TrainedNetwork, data: Any, levels: Levels, future_data: Any = None
) -> TableAnswer:
    """Forecast what follows, with bounds in columns such as `load_lower_80` and `load_q90`.

    Args:
        trained: A forecasting network.
        data: What to forecast from.
        levels: Which bounds.
        future_data: A table with known-future covariates, if there is one.

    Returns:
        The table, and notes, the last on how the bounds were made.
    """
    if trained.settings.task != "forecasting":
        raise ArgumentError("intervals and quantiles are for forecasts.")
    reading = read_for(trained, data, future_data)
    answer = tabulate_reading(trained, reading)
    calibrations = calibrate_for(trained, reading.data)
    kept, _ = leave_out_short(reading.data, trained.shape.input_len)
    reading = SeriesReading(kept, reading.form)
    rows = last_rows(reading.data, trained.shape.input_len)
    windows = reading.data.values[np.stack(list(rows.values()))]
    scaler = trained.scaler_of_series(reading.data)
    scaled = trained.scale(windows, scaler)
    repairs = find_repairs(trained, scaled, list(rows), reading.data.columns)
    shares = None if repairs is None else repairs.shares
    counts = trained.strategy.count_repairs(scaled)
    moves = window_moves(scaled, trained.shape.horizon, counts)
    frame = answer.frame
    names = [name for name in frame.columns if name in ("y", *reading.data.columns)]
    form = reading.form.as_table()
    widening = 0.0
    for suffix, level in levels.columns():
        calibration = calibrations.at(level)
        widening = max(widening, calibration.widening)
        (offset,) = calibration.offsets([level], shares, moves)
        forecast = forecast_ahead(trained, reading.data, level)
        values = forecast.values + offset * scaler.std
        bound = give(SeriesReading(reading.data, form), forecast._replace(values=values))
        for name in names:
            frame[f"{name}_{suffix}"] = bound[name].to_numpy()
    plain = trained.settings.train_quantiles is None
    reasons = ["a window moves further"] if plain else []
    reasons += ["values were repaired"] if widening else []
    wider = f", wider where {' or '.join(reasons)}" if reasons else ""
    learnt = "" if plain else "learnt quantiles, "
    note = f"Intervals are {learnt}conformal, from {calibrations.source}{wider}."
    return answer._replace(notes=(*answer.notes, note))


def measure_uncertainty(
    trained: TrainedNetwork, windows: ForecastWindows, coverages: Sequence[float]
) -> dict[str, Any]:
    """How intervals would have done: the first half of the windows calibrates, the second tests.

    Windows of the second half whose inputs or targets touch a target of the first are left out.

    Args:
        trained: A forecasting network.
        windows: Windows in order of time that chose nothing, such as test windows.
        coverages: The nominal coverages.

    Returns:
        For each coverage what fixed and adaptive intervals enclosed and how wide they were, in
        z-scored units; the CRPS of the fixed ones; how many windows calibrated and tested.

    Raises:
        ArgumentError: There are too few windows.
    """
    first, later = halves(windows)
    calibration = calibrate_on(trained, windows, first)
    local = calibrate_on(trained, windows, first, local=True)
    residuals, own, moves = signed_residuals(trained, windows, later)

    def bound(level: float) -> Array:
        """A quantile of the later windows, as what lies between it and the forecast."""
        if trained.settings.train_quantiles is None:
            fixed: Array = local.offsets([level], own, moves)[0]
            return fixed
        after = signed_residuals(trained, windows, later, level).values
        before = calibrate_on(trained, windows, first, level)
        learnt: Array = residuals - after + before.offsets([level], own)[0]
        return learnt

    adaptive = {c: follow(calibration, residuals, windows.starts[later], c) for c in coverages}
    offsets = np.stack([np.broadcast_to(bound(each), residuals.shape) for each in CRPS_LEVELS])
    report: dict[str, Any] = {"calibration_windows": len(first), "windows": len(later)}
    report["crps"] = crps(residuals, offsets, CRPS_LEVELS)
    report["intervals"] = []
    for coverage in coverages:
        low, high = bound((1 - coverage) / 2), bound((1 + coverage) / 2)
        fixed = np.broadcast_to(low, residuals.shape), np.broadcast_to(high, residuals.shape)
        found = {
            kind: measure_intervals(residuals, lower, upper, coverage).to_dict()
            for kind, (lower, upper) in (("fixed", fixed), ("adaptive", adaptive[coverage]))
        }
        report["intervals"].append({"nominal": coverage, **found})
    return report


def halves(windows: ForecastWindows) -> tuple[Array, Array]:
    """Places of windows to calibrate on, and of later ones that share no target with them.

    Raises:
        ArgumentError: There are too few.
    """
    chosen = spread_out(windows)
    half = len(chosen) // 2
    border = windows.starts[chosen[half - 1]] + windows.input_len + windows.horizon
    later = chosen[half:][windows.starts[chosen[half:]] + windows.input_len >= border]
    if half < 10 or len(later) < 10:
        raise ArgumentError(f"{len(windows)} windows are too few to judge intervals by.")
    return chosen[:half], later


def calibrate_on(
    trained: TrainedNetwork,
    windows: ForecastWindows,
    chosen: Array,
    level: float | None = None,
    *,
    local: bool = False,
) -> Calibration:
    """A calibration by some of the windows, around a quantile if the network gives some."""
    found = signed_residuals(trained, windows, chosen, level)
    moves = found.moves if local else None
    return from_residuals(found.values, found.shares, source="the first half", moves=moves)


def follow(
    calibration: Calibration, residuals: Array, starts: Array, coverage: float
) -> tuple[Array, Array]:
    """Bounds `[N, H, C]` around 0 that adaptive intervals give to windows in order of time.

    Rows become known one after the other, as they would in use: a step of a window is learnt only
    when its time has come.
    """
    intervals = AdaptiveIntervals(calibration, coverage=coverage)
    horizon = residuals.shape[1]
    lower, upper = np.empty_like(residuals), np.empty_like(residuals)
    waiting: list[int] = []
    for place, start in enumerate(starts):
        for time in range(starts[place - 1], start) if place else ():
            known = [residuals[one, time - starts[one]] for one in waiting]
            intervals.learn(np.reshape(known, (len(known), residuals.shape[2])))
            waiting = [one for one in waiting if time + 1 - starts[one] < horizon]
        bounds = intervals.issue(np.zeros(residuals.shape[1:]))
        lower[place], upper[place] = bounds
        waiting.append(place)
    return lower, upper
