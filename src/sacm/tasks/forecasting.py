"""Forecasting: mean absolute error in training, exact errors over every test window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sacm.backbones.base import Backbone, ForecastNetwork
from sacm.backbones.covariates import CovariateAdapter
from sacm.backbones.quantiles import (
    QuantileAdapter,
    complete_levels,
    find_levels,
    pinball,
    take_median,
)
from sacm.backbones.registry import build, takes_calendar
from sacm.backbones.statistical import STATISTICAL, LowerLimit, MeanForecaster
from sacm.data.batches import WindowBatches, beside_windows
from sacm.data.covariates import ROLES, CovariatePlan, calendar_sizes, check_roles, fit_covariates
from sacm.data.datasets import ForecastingData
from sacm.data.load import published
from sacm.data.scaling import ChannelScaler
from sacm.data.windows import SplitWindows, forecasting_windows
from sacm.errors import ArgumentError
from sacm.metrics.catalogue import RegisteredForecastMetrics
from sacm.metrics.forecasting import ForecastAccumulator, ForecastReport, RelativeErrors
from sacm.metrics.intervals import Record
from sacm.settings import AUTO, ResolvedSettings, RunSettings
from sacm.strategies.base import REPLACES_LOSS, Step, Strategy
from sacm.strategies.registry import parse, parts_of
from sacm.tasks.base import (
    EVALUATION_BATCH,
    Calibration,
    NetworkShape,
    Result,
    Task,
    column_names,
    evaluating,
    registered_values,
    scaler_of,
    to_device,
)
from sacm.tasks.baselines import ForecastBaselines, units_of
from sacm.tasks.calibration import calibrate_forecasts
from sacm.tasks.lengths import find_lengths, find_season, make_room

_SMALL_BATCH_DATA = ("Electricity", "ECG")
_SMALL_BATCH_BACKBONES = ("MultiPatchFormer",)
_BENCHMARK_HORIZON, _BENCHMARK_INPUT = 96, 96
_MOST_ROWS = 12  # channels that a table names


class Forecasting(Task[ForecastingData]):
    """Windows `[B, L, C]` to the `H` steps that follow."""

    name = "forecasting"
    default_backbone = "PatchTST"
    default_strategy = "guard"
    selections = ("mae", "mse", "pinball")
    unused = ("score",)
    leading_metrics = ("mse", "mae")

    def check(self, settings: RunSettings) -> None:
        super().check(settings)
        CovariatePlan.of(settings.covariates())
        if settings.train_quantiles is None:
            if settings.select == "pinball":
                raise ArgumentError("select = 'pinball': name quantiles by train_quantiles.")
            return
        complete_levels(settings.train_quantiles)
        strategy = parse(settings.strategy or self.default_strategy)
        if any(REPLACES_LOSS in part.roles for part in parts_of(strategy)):
            raise ArgumentError(
                f"{settings.strategy} has a loss of its own, and so have train_quantiles: choose "
                "one of them."
            )

    def resolve(self, settings: RunSettings, data: ForecastingData) -> ResolvedSettings:
        """Complete settings; what data were read with need not be told again."""
        own = {role: getattr(data, role) for role in ROLES if getattr(data, role)}
        asked = {name: settings.covariates().get(name, own.get(name)) for name in ROLES}
        asked["scaling"] = data.scaling or "shared"
        if settings.train_quantiles is not None:
            asked["train_quantiles"] = complete_levels(settings.train_quantiles)
        settings = settings.model_copy(update=asked)
        check_roles(data, CovariatePlan.of(settings.covariates()))
        return super().resolve(settings, data)

    def preset(self, settings: RunSettings, data: ForecastingData) -> dict[str, Any]:
        input_len, horizon = _BENCHMARK_INPUT, _BENCHMARK_HORIZON
        dataset = published(data.name)
        if dataset is not None:
            input_len, horizon = dataset.input_len, dataset.horizons[0]
        elif not is_benchmark(data.name):
            candidates = settings.backbone == AUTO
            found = find_lengths(data, settings.horizon, candidates=candidates)
            input_len, horizon = found.input_len, found.horizon
        horizon, input_len = settings.horizon or horizon, settings.input_len or input_len
        small = (
            horizon >= 720
            or data.name in _SMALL_BATCH_DATA
            or settings.backbone in _SMALL_BATCH_BACKBONES
        )
        lengths = {"horizon": horizon, "input_len": input_len, "batch_size": 16 if small else 32}
        return lengths if settings.train_quantiles is None else {**lengths, "select": "pinball"}

    def explain_lengths(self, settings: RunSettings, data: ForecastingData) -> str:
        if is_benchmark(data.name):
            return ""
        season = find_season(data)
        if season == 1:
            return "no season was found"
        return f"the season has {season} rows"

    def divide(self, settings: ResolvedSettings, data: ForecastingData) -> ForecastingData:
        """The data with room for the horizon in validation and test, unless shares are named."""
        if settings.split is not None:
            return data
        return make_room(data, settings.horizon, settings.input_len)

    def windows(
        self,
        settings: ResolvedSettings,
        data: ForecastingData,
        *,
        scaler: ChannelScaler | None = None,
    ) -> SplitWindows[Any]:
        input_len, horizon = settings.input_len, settings.horizon
        if settings.train_fraction < 1:
            data = data.with_training_fraction(
                settings.train_fraction, input_len=input_len, horizon=horizon
            )
        return forecasting_windows(
            data,
            input_len=input_len,
            horizon=horizon,
            stamps=_uses_calendar(settings, data),
            scaler=scaler,
            stride=settings.stride,
            validation_stride=settings.validation_stride,
            plan=CovariatePlan.of(settings.covariates()),
        )

    def shape(self, settings: ResolvedSettings, data: ForecastingData) -> NetworkShape:
        tables = None
        if _uses_calendar(settings, data) and data.timestamps is not None:
            tables = calendar_sizes(data.timestamps)
        plan, scale = CovariatePlan.of(settings.covariates()), None
        if plan:
            fitted = fit_covariates(data, plan)
            scale = (tuple(fitted.mean.tolist()), tuple(fitted.std.tolist()))
        return NetworkShape(
            channels=data.channels,
            input_len=settings.input_len,
            horizon=settings.horizon,
            calendar_sizes=tables,
            columns=column_names(data.columns),
            frequency=data.frequency,
            stamped=data.timestamps is not None,
            covariates=scale,
        )

    def build(self, settings: ResolvedSettings, shape: NetworkShape) -> Backbone:
        network: ForecastNetwork
        if settings.backbone == AUTO:
            members = settings.overrides["members"]
            networks = [self._build_member(settings, shape, member) for member in members]
            weights = [member["weight"] for member in members]
            network = MeanForecaster(networks, weights, input_len=shape.input_len)
        else:
            network = self._build_network(settings, shape)
        return network if shape.lowest is None else LowerLimit(network, shape.lowest)

    def _build_member(
        self, settings: ResolvedSettings, shape: NetworkShape, member: Mapping[str, Any]
    ) -> ForecastNetwork:
        """One candidate of a mean: `name` and `input_len`, `size` of a network, or what else."""
        shape = replace(shape, input_len=member["input_len"])
        if member["name"] not in STATISTICAL:
            own = {"backbone": member["name"], "size": member["size"], "overrides": {}}
            return self._build_network(settings.model_copy(update=own), shape)
        return STATISTICAL[member["name"]](
            input_len=shape.input_len,
            horizon=shape.horizon,
            channels=shape.channels,
            season=member["season"],
            log=member["log"],
        )

    def _build_network(self, settings: ResolvedSettings, shape: NetworkShape) -> ForecastNetwork:
        network = build(
            settings.backbone,
            "forecasting",
            channels=shape.channels,
            size=settings.size,
            calendar_sizes=shape.calendar_sizes,
            input_len=shape.input_len,
            horizon=shape.horizon,
            **settings.overrides,
        )
        assert isinstance(network, ForecastNetwork)
        if shape.covariates is not None:
            mean, std = shape.covariates
            past = len(settings.past or ())
            network = CovariateAdapter(network, past=past, mean=mean, std=std)
        if settings.train_quantiles is None:
            return network
        return QuantileAdapter(network, settings.train_quantiles)

    def limit(
        self,
        settings: ResolvedSettings,
        data: ForecastingData,
        shape: NetworkShape,
        scaler: ChannelScaler,
    ) -> NetworkShape:
        """The shape with the least values of forecasts, where there are any."""
        minimum = find_minimum(settings, data)
        if minimum is None:
            return shape
        lowest = None
        if not scaler.series:  # else every series has its own, and only predictions are limited
            scaled = zip(minimum, scaler.mean.tolist(), scaler.std.tolist(), strict=True)
            lowest = tuple(None if m is None else (m - mean) / std for m, mean, std in scaled)
        return replace(shape, minimum=minimum, lowest=lowest)

    def answer(self, model: Any, batch: Any, x: Tensor) -> Tensor:
        return forecast(model, batch, x)

    def losses(self, answer: Tensor, batch: Any) -> Tensor:
        return (answer - batch.y).abs()

    def loss(self, step: Step, x: Tensor) -> Tensor:
        answer, target = ask_network(step.model, step.batch, x), step.batch.y
        prediction = take_median(answer)
        levels = find_levels(step.model) if answer.dim() == 4 else None
        if levels is None:
            return step.mean(step.losses(prediction), prediction)
        return step.mean(pinball(answer, target, levels), prediction)

    def validate(
        self, model: Backbone, batches: WindowBatches[Any], strategy: Strategy, select: str
    ) -> float:
        if select == "pinball":
            return measure_quantiles(model, batches, strategy).crps
        report = _errors(model, batches, strategy, ForecastAccumulator())
        return report.scaled.mse if select == "mse" else report.scaled.mae

    def calibrate(
        self,
        model: Backbone,
        windows: SplitWindows[Any],
        settings: ResolvedSettings,
        strategy: Strategy,
        data: ForecastingData,
    ) -> Calibration | None:
        """Residuals of the test windows, which chose nothing; without any, of validation."""
        source = "test" if len(windows.test) else "validation"
        chosen = windows.test if len(windows.test) else windows.val
        return calibrate_forecasts(model, chosen, strategy, source=source)

    def evaluate(
        self,
        model: Backbone,
        windows: SplitWindows[Any],
        data: ForecastingData,
        settings: ResolvedSettings,
        strategy: Strategy,
        *,
        batch_size: int = EVALUATION_BATCH,
    ) -> Result:
        scaler = scaler_of(windows)
        accumulator = ForecastAccumulator(scale=scaler.units)
        registered = RegisteredForecastMetrics()
        batches = WindowBatches(windows.test, batch_size)
        units = None if scaler.reference is None else torch.from_numpy(scaler.std / scaler.units)
        baselines = ForecastBaselines(data, scaler, units)
        report = _errors(
            model, batches, strategy, accumulator, registered, baselines.model, units=units
        )
        assert report.raw is not None
        beside = baselines.compare(batches, {"mae": report.scaled.mae, "mse": report.scaled.mse})
        row: dict[str, float | None] = {
            "mae": report.scaled.mae,
            "mse": report.scaled.mse,
            "mae_raw": report.raw.mae,
            "mse_raw": report.raw.mse,
            **registered.compute(),
        }
        record = {**report.to_dict(), "columns": list(data.columns)}
        if share := unmeasured_share(data):
            record["unmeasured"] = share
        if scaler.series:
            record["series"] = _by_series(scaler, accumulator)
        if settings.train_quantiles is not None:
            quantiles = measure_quantiles(model, batches, strategy, units)
            record["quantiles"] = quantiles.to_dict()
            row["crps"] = quantiles.crps
        return Result(row, record, report.windows, beside.to_dict())

    def tabulate(self, metrics: Mapping[str, Any]) -> tuple[tuple[str, ...], list[Sequence[Any]]]:
        report = metrics["report"]
        raw, scaled = report["raw"], report["scaled"]
        pooled = "in own deviations" if "series" in report else "z-scored"
        names = report.get("columns") or [
            f"channel {place + 1}" for place in range(len(raw["channel_mae"]))
        ]
        pairs = zip(names, raw["channel_mae"], raw["channel_mse"], strict=True)
        rows: list[Sequence[Any]] = []
        for name, mae, mse in list(pairs)[:_MOST_ROWS]:
            rows.append((name, mae, None if mse is None else mse**0.5, mse))
        if len(names) > _MOST_ROWS:
            rows.append((f"… and {len(names) - _MOST_ROWS} more",))
        if len(names) > 1 or "series" in report:
            everything = "all series" if "series" in report else "all channels"
            errors = (scaled[name] for name in ("mae", "rmse", "mse"))
            rows.append((f"{everything}, {pooled}", *errors))
        rows += [*_extremes(report), *tabulate_quantiles(report)]
        rows += [(label, value) for label, value in registered_values(metrics, self.name)]
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
    found = tuple(0.0 if value >= 0 else None for value in least)
    return found if any(value is not None for value in found) else None


def is_benchmark(name: str) -> bool:
    """Whether results on a data set are published."""
    return name.startswith("Synth-12") or published(name) is not None


def forecast(model: Any, batch: Any, x: Tensor) -> Tensor:
    """`[B, H, C]` from windows `x` `[B, L, C]`, with what the batch has beside them."""
    return take_median(ask_network(model, batch, x))


def _errors(
    model: Backbone,
    batches: WindowBatches[Any],
    strategy: Strategy,
    accumulator: ForecastAccumulator,
    registered: RegisteredForecastMetrics | None = None,
    relative: RelativeErrors | None = None,
    *,
    units: Tensor | None = None,
) -> ForecastReport:
    """Errors of all batches, multiplied by `units` if they are to be stated in others."""
    with evaluating(model) as device:
        for batch in batches:
            batch = to_device(batch, device)
            prediction = forecast(model, batch, strategy.inputs(batch.x)).float()
            target = batch.y
            if relative is not None:
                relative.update(prediction, target, observed=batch.observed, series=batch.series)
            if units is not None:
                unit = units_of(units, batch).to(device)
                prediction, target = prediction * unit, target * unit
            accumulator.update(prediction, target, observed=batch.observed, series=batch.series)
            if registered is not None:
                registered.update(prediction, target, observed=batch.observed)
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


def _by_series(
    scaler: ChannelScaler, accumulator: ForecastAccumulator
) -> dict[str, dict[str, float]]:
    """Errors of every series that was tested, in its own deviations and in raw units."""
    pairs = zip(scaler.series, accumulator.by_series(), strict=True)
    return {name: {"mae": own[0], "mae_raw": own[1]} for name, own in pairs if own is not None}


def _extremes(report: Mapping[str, Any]) -> list[Sequence[Any]]:
    """The series with the least and the largest error: means in raw units hide small series."""
    found = sorted(report.get("series", {}).items(), key=lambda item: item[1]["mae"])
    if len(found) < 2:
        return []
    return [
        (f"{name} ({which} by own deviations)", own["mae_raw"])
        for which, (name, own) in (("best series", found[0]), ("worst series", found[-1]))
    ]


def _uses_calendar(settings: ResolvedSettings, data: ForecastingData) -> bool:
    named = settings.backbone != AUTO
    return named and data.timestamps is not None and takes_calendar(settings.backbone)


@dataclass(frozen=True)
class QuantileReport(Record):
    """What the quantiles of a network did, in scaled units.

    Attributes:
        levels: The Q levels.
        below: The share of targets at or below each quantile, `[Q]`; as large as its level if the
            quantiles are right.
        nominal: What pairs of quantiles should enclose, the narrowest first.
        coverage: What they enclosed.
        width: How wide they were in the mean.
        crps: Twice the mean pinball loss over the levels.
    """

    levels: tuple[float, ...]
    below: tuple[float, ...]
    nominal: tuple[float, ...]
    coverage: tuple[float, ...]
    width: tuple[float, ...]
    crps: float


def ask_network(model: Any, batch: Any, x: Tensor) -> Tensor:
    """The answer to windows `x` `[B, L, C]`: `[B, H, C]`, or `[B, H, C, Q]` with quantiles."""
    answer: Tensor = model(x, *beside_windows(batch))
    return answer


def measure_quantiles(
    model: Backbone, batches: WindowBatches[Any], strategy: Strategy, units: Tensor | None = None
) -> QuantileReport:
    """Test quantiles on all batches; `units` multiplies errors and widths.

    Raises:
        ArgumentError: The network gives none.
    """
    levels = find_levels(model)
    if levels is None:
        raise ArgumentError("the network gives no quantiles: train it with train_quantiles.")
    level = torch.tensor(levels, dtype=torch.float64)
    half = len(levels) // 2
    count, below, loss = torch.zeros(()), torch.zeros(len(levels)), torch.zeros(())
    inside, width = torch.zeros(half), torch.zeros(half)
    with evaluating(model) as device:
        for batch in batches:
            batch = to_device(batch, device)
            found = ask_network(model, batch, strategy.inputs(batch.x)).cpu().double()
            truth = batch.y.cpu().double().unsqueeze(-1)  # [B, H, C, 1]
            seen = torch.ones_like(truth)
            if batch.observed is not None:
                seen = batch.observed.cpu().double().unsqueeze(-1)
            unit = 1.0 if units is None else units_of(units, batch).unsqueeze(-1).double()
            error = truth - found
            low, high = found[..., :half].flip(-1), found[..., half + 1 :]
            count = count + seen.sum()
            below = below + ((error <= 0) * seen).sum(dim=(0, 1, 2))
            losses = torch.maximum(level * error, (level - 1) * error).mean(dim=-1, keepdim=True)
            loss = loss + (2 * losses * unit * seen).sum()
            inside = inside + ((truth >= low) & (truth <= high)).mul(seen).sum(dim=(0, 1, 2))
            width = width + ((high - low) * unit * seen).sum(dim=(0, 1, 2))
    return QuantileReport(
        levels=levels,
        below=as_shares(below / count),
        nominal=tuple(round(1 - 2 * one, 10) for one in reversed(levels[:half])),
        coverage=as_shares(inside / count),
        width=as_shares(width / count),
        crps=float(loss / count),
    )


def as_shares(values: Tensor) -> tuple[float, ...]:
    """A tensor as plain numbers."""
    return tuple(map(float, values))


def tabulate_quantiles(report: Mapping[str, Any]) -> list[Sequence[Any]]:
    """Rows for people on the quantiles of a run, if it has any."""
    found = report.get("quantiles")
    if found is None:
        return []
    pairs = zip(found["nominal"], found["coverage"], found["width"], strict=True)
    rows: list[Sequence[Any]] = [("CRPS, z-scored", found["crps"])]
    for nominal, coverage, width in pairs:
        rows += [
            (f"share in the {100 * nominal:g} % interval", coverage),
            (f"width of the {100 * nominal:g} % interval, z-scored", width),
        ]
    return rows
