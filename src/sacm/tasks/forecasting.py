"""Forecasting: mean absolute error in training, exact errors over every test window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sacm.backbones.adapters import CovariateAdapter, LowerLimit
from sacm.backbones.base import Backbone, ForecastNetwork
from sacm.backbones.registry import entry, has_tables
from sacm.backbones.statistical import STATISTICAL, MeanForecaster
from sacm.data.batches import WindowBatches
from sacm.data.covariates import ROLES, calendar_sizes, check_roles, roles_of
from sacm.data.datasets import ForecastingData
from sacm.data.load import published
from sacm.data.scaling import ChannelScaler
from sacm.data.windows import forecasting_windows
from sacm.errors import ArgumentError
from sacm.metrics.catalogue import Row, compute_metrics, mean_over_windows, registered_metrics
from sacm.metrics.forecasting import ForecastAccumulator, ForecastReport
from sacm.settings import AUTO, ResolvedSettings, RunSettings
from sacm.tasks.base import (
    EVALUATION_BATCH,
    Calibration,
    HeadingsAndRows,
    NetworkShape,
    Result,
    Scaler,
    Task,
    Trained,
    Windows,
    answers,
    column_names,
)
from sacm.tasks.baselines import forecast_baselines
from sacm.tasks.calibration import calibrate_forecasts
from sacm.tasks.lengths import find_lengths, find_season, make_room, member_lengths

_SMALL_BATCH_DATA = ("Electricity", "ECG")
_SMALL_BATCH_BACKBONES = ("MultiPatchFormer",)
_BENCHMARK_HORIZON, _BENCHMARK_INPUT = 96, 96
_MOST_ROWS = 12  # channels that a table names


class Forecasting(Task[ForecastingData]):
    """Windows `[B, L, C]` to the `H` steps that follow."""

    name = "forecasting"
    default_backbone = "PatchTST"
    default_strategy = "guard"
    selections = ("mae", "mse")
    unused = ("score",)
    leading_metrics = ("mse", "mae")

    def check(self, settings: RunSettings) -> None:
        super().check(settings)
        roles_of(settings.covariates())

    def resolve(self, settings: RunSettings, data: ForecastingData) -> ResolvedSettings:
        """Complete settings; what data were read with need not be told again."""
        covariates = settings.covariates()
        asked = {role: covariates.get(role, getattr(data, role) or None) for role in ROLES}
        asked["scaling"] = data.scaling or "shared"
        settings = settings.model_copy(update=asked)
        check_roles(data, roles_of(settings.covariates()))
        return super().resolve(settings, data)

    def preset(self, settings: RunSettings, data: ForecastingData) -> dict[str, Any]:
        input_len, horizon = _BENCHMARK_INPUT, _BENCHMARK_HORIZON
        dataset = published(data.name)
        if dataset is not None:
            input_len, horizon = dataset.input_len, dataset.horizons[0]
        elif not is_benchmark(data.name):
            compete = settings.backbone == AUTO
            input_len, horizon = find_lengths(data, settings.horizon, candidates=compete)
        horizon, input_len = settings.horizon or horizon, settings.input_len or input_len
        small = horizon >= 720 or data.name in _SMALL_BATCH_DATA
        small = small or settings.backbone in _SMALL_BATCH_BACKBONES
        return {"horizon": horizon, "input_len": input_len, "batch_size": 16 if small else 32}

    def explain_lengths(self, settings: RunSettings, data: ForecastingData) -> str:
        if is_benchmark(data.name):
            return ""
        season = find_season(data)
        return "no season was found" if season == 1 else f"the season has {season} rows"

    def divide(self, settings: ResolvedSettings, data: ForecastingData) -> ForecastingData:
        """The data with room for the horizon in validation and test, unless shares are named."""
        return data if settings.split is not None else make_room(data, settings.horizon)

    def windows(
        self, settings: ResolvedSettings, data: ForecastingData, *, scaler: Scaler = None
    ) -> Windows:
        input_len, horizon = settings.input_len, settings.horizon
        if settings.train_fraction < 1:
            data = _first_windows(data, settings.train_fraction, input_len + horizon)
        return forecasting_windows(
            data,
            input_len=input_len,
            horizon=horizon,
            stamps=_uses_calendar(settings, data),
            scaler=scaler,
            stride=settings.stride,
            validation_stride=settings.validation_stride,
            shorter=member_lengths(data, input_len, horizon) if settings.backbone == AUTO else None,
        )

    def shape(
        self, settings: ResolvedSettings, data: ForecastingData, scaler: Scaler = None
    ) -> NetworkShape:
        tables = scale = minimum = lowest = None
        if _uses_calendar(settings, data) and data.timestamps is not None:
            tables = calendar_sizes(data.timestamps)
        if data.covariates is not None:
            rows = [data.covariates[part.start : part.stop] for part in data.ranges("train")]
            fitted = ChannelScaler.fit(rows)
            scale = (tuple(fitted.mean.tolist()), tuple(fitted.std.tolist()))
        if scaler is not None:
            minimum = find_minimum(settings, data)
        if minimum is not None and scaler is not None and not scaler.series:
            scaled = zip(minimum, scaler.mean.tolist(), scaler.std.tolist(), strict=True)
            lowest = tuple(None if m is None else (m - mean) / std for m, mean, std in scaled)
        return NetworkShape(
            channels=data.channels,
            input_len=settings.input_len,
            horizon=settings.horizon,
            calendar_sizes=tables,
            columns=column_names(data.columns),
            frequency=data.frequency,
            covariates=scale,
            minimum=minimum,
            lowest=lowest,
        )

    def build(self, settings: ResolvedSettings, shape: NetworkShape) -> Backbone:
        if settings.backbone == AUTO:
            members = settings.overrides["members"]
            networks = [self._build_member(settings, shape, member) for member in members]
            weights = [member["weight"] for member in members]
            network: ForecastNetwork = MeanForecaster(networks, weights, input_len=shape.input_len)
        else:
            network = self._build_network(settings, shape)
        return network if shape.lowest is None else LowerLimit(network, shape.lowest)

    def _build_member(
        self, settings: ResolvedSettings, shape: NetworkShape, member: Mapping[str, Any]
    ) -> ForecastNetwork:
        """One candidate of a mean: `name` and `input_len`, `size` of a network, or `season`."""
        shape = replace(shape, input_len=member["input_len"])
        if member["name"] not in STATISTICAL:
            changes = {"backbone": member["name"], "size": member["size"], "overrides": {}}
            return self._build_network(settings.model_copy(update=changes), shape)
        sizes = {"input_len": shape.input_len, "horizon": shape.horizon, "channels": shape.channels}
        return STATISTICAL[member["name"]](**sizes, season=member["season"])

    def _build_network(self, settings: ResolvedSettings, shape: NetworkShape) -> ForecastNetwork:
        network = super().build(settings, shape)
        assert isinstance(network, ForecastNetwork)
        if shape.covariates is not None:
            mean, std = shape.covariates
            past = len(settings.past or ())
            network = CovariateAdapter(network, past=past, mean=mean, std=std)
        return network

    def losses(self, answer: Tensor, batch: Any) -> Tensor:
        return (answer - batch.y).abs()

    def validate(self, trained: Trained, batches: WindowBatches[Any]) -> float:
        report = _errors(trained, batches, ForecastAccumulator())
        return report.scaled.mse if trained.settings.select == "mse" else report.scaled.mae

    def calibrate(self, trained: Trained, windows: Windows, data: ForecastingData) -> Calibration:
        """Residuals of the test windows, which chose nothing; without any, of validation."""
        if len(windows.test):
            return calibrate_forecasts(trained, windows.test, source="test")
        return calibrate_forecasts(trained, windows.val, source="validation")

    def evaluate(self, trained: Trained, windows: Windows, data: ForecastingData) -> Result:
        sums = list[Row]()
        batches = WindowBatches(windows.test, EVALUATION_BATCH)

        def measure(accumulator: ForecastAccumulator) -> ForecastReport:
            return _errors(trained, batches, accumulator, sums)

        report, baselines = forecast_baselines(data, windows.scaler, batches, measure)
        assert report.raw is not None
        row: dict[str, float | None] = {
            "mae": report.scaled.mae,
            "mse": report.scaled.mse,
            "mae_raw": report.raw.mae,
            "mse_raw": report.raw.mse,
            **mean_over_windows(sums, report.windows),
        }
        record = {**asdict(report), "columns": list(data.columns)}
        if windows.scaler.series:
            record["series"] = list(windows.scaler.series)
        if share := unmeasured_share(data):
            record["unmeasured"] = share
        return Result(row, record, report.windows, baselines)

    def tabulate(self, metrics: Mapping[str, Any]) -> HeadingsAndRows:
        report = metrics["report"]
        raw, names, series = report["raw"], report["columns"], report.get("series")
        triples = list(zip(names, raw["channel_mae"], raw["channel_mse"], strict=True))
        rows: list[Sequence[Any]] = [
            (name, mae, None if mse is None else mse**0.5, mse)
            for name, mae, mse in triples[:_MOST_ROWS]
        ]
        if len(names) > _MOST_ROWS:
            rows.append((f"… and {len(names) - _MOST_ROWS} more",))
        if len(names) > 1 or series:
            label = "all series, in own deviations" if series else "all channels, z-scored"
            rows.append((label, *(report["scaled"][name] for name in ("mae", "rmse", "mse"))))
        row = metrics["test"]
        added = registered_metrics(self.name)
        rows += [(each.label, row[each.name]) for each in added if each.name in row]
        return ("error in units of the data", "MAE", "RMSE", "MSE"), rows


def find_minimum(
    settings: ResolvedSettings, data: ForecastingData
) -> tuple[float | None, ...] | None:
    """The least value of each channel's forecasts, None for no limit; None if no channel has one.

    It is what the settings say, or 0 for channels of a user's own data that never were below.
    """
    if isinstance(settings.minimum, float):
        return (settings.minimum,) * data.channels
    if settings.minimum == "none" or not data.reach_back:
        return None
    rows = data.splits.train or range(len(data.values))
    least = np.nanmin(data.values[rows.start : rows.stop], axis=0)
    return tuple(0.0 if value >= 0 else None for value in least) if (least >= 0).any() else None


def is_benchmark(name: str) -> bool:
    """Whether results on a data set are published."""
    return name.startswith("Synth-12") or published(name) is not None


def _errors(
    trained: Trained,
    batches: WindowBatches[Any],
    accumulator: ForecastAccumulator,
    sums: list[Row] | None = None,
) -> ForecastReport:
    """Errors of all batches; `sums` gets what registered metrics give for each of them."""
    for batch, prediction in answers(trained, batches):
        accumulator.update(prediction, batch.y, observed=batch.observed, series=batch.series)
        if sums is not None:
            seen = torch.ones_like(batch.y) if batch.observed is None else batch.observed
            stated = (accumulator.in_units(x, batch.series).cpu() for x in (prediction, batch.y))
            sums.append(compute_metrics("forecasting", *stated, seen.cpu() > 0))
    return accumulator.compute()


def unmeasured_share(data: ForecastingData) -> float:
    """The share of the test targets, or of all where there is no test part, that is not known."""
    rows = data.splits.test or range(len(data.values))
    part = slice(rows.start, rows.stop)
    missing = np.isnan(data.clean[part])
    if data.observed is not None:
        missing = missing | (data.observed[part] == 0)
    wanted = np.isin(data.columns, data.target) if data.target else slice(None)
    return float(missing[:, wanted].mean()) if len(rows) else 0.0


def _first_windows(data: ForecastingData, fraction: float, length: int) -> ForecastingData:
    """The data with only the first share of the training windows of `length` rows."""
    if len(data.segments) > 1:
        raise ArgumentError(f"{data.name} holds several series: cut each of them yourself.")
    train = data.splits.train
    kept = max(1, int((len(train) - length + 1) * fraction)) + length - 1
    return replace(data, splits=replace(data.splits, train=train[:kept]))


def _uses_calendar(settings: ResolvedSettings, data: ForecastingData) -> bool:
    if settings.backbone == AUTO or data.timestamps is None:
        return False
    return has_tables(entry(settings.backbone, "forecasting").model)
