"""What finished runs of a protocol are tested by besides their own test.

Faults at test are those of SensorFault-Bench (arXiv:2605.10822).

Inputs of test windows get one fault each, targets never. Severity is uniform, one draw a window,
the same for every fault. Sizes are in deviations of the clean training rows, whatever the scaler of
the run was fitted on. At most 2,000 windows are used, drawn once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sacm.data.batches import beside_windows
from sacm.data.corrupt import corrupt_training
from sacm.data.datasets import AnomalyData, AnyData, ForecastingData
from sacm.data.scaling import ChannelScaler
from sacm.data.windows import SplitWindows
from sacm.errors import ArgumentError
from sacm.files import read_weights
from sacm.inference import Predictor
from sacm.inject.attach import strip_state_dict
from sacm.metrics.anomaly import evaluate_scores
from sacm.quality.guard import Guard
from sacm.quality.protect import protect
from sacm.quality.windows import WindowGuard
from sacm.strategies.base import Strategy
from sacm.tasks.base import EVALUATION_BATCH, evaluating, to_device
from sacm.training.run import Run
from sacm_lab.robust.faults import FAULTS
from sacm_lab.robust.faults.windows import corrupt_windows

CLEAN = "clean"
MOST_WINDOWS = 2000
BLOCKS = 20  # of neighbouring windows, for bootstrap intervals
SEED = 0


@dataclass(frozen=True, eq=False)
class FaultTest:
    """Test windows of a run, and their inputs under every fault.

    Attributes:
        windows: All windows of the run.
        places: Positions of the N test windows that are used, in order of time.
        inputs: Inputs `[N, L, C]` by fault; `clean` among them.
    """

    windows: SplitWindows[Any]
    places: np.ndarray
    inputs: dict[str, Tensor]

    @classmethod
    def make(cls, run: Run, data: ForecastingData) -> FaultTest:
        """Draw windows and severities, and break the inputs."""
        windows = run.task.windows(run.settings, data, scaler=run.scaler)
        random = np.random.default_rng(SEED)
        places = np.arange(len(windows.test))
        if len(places) > MOST_WINDOWS:
            places = np.sort(random.choice(places, MOST_WINDOWS, replace=False))
        severity = torch.from_numpy(random.random(len(places)).astype(np.float32))
        x = windows.test.batch(places).x
        rows = (data.values[rows.start : rows.stop] for rows in data.ranges("train"))
        clean = ChannelScaler.fit(rows)
        z = clean.transform(run.scaler.inverse(x))
        broken = {
            kind: run.scaler.transform(
                clean.inverse(corrupt_windows(z, kind, severity, seed=SEED + 100 + number))
            )
            for number, kind in enumerate(FAULTS.names("tested"))
        }
        return cls(windows, places, {CLEAN: x, **broken})

    def errors(self, model: nn.Module, strategy: Strategy) -> dict[str, np.ndarray]:
        """MSE of every window `[N]` by fault, in deviations of the clean training rows."""
        scaler = self.windows.train.scaler
        reference = scaler.std if scaler.reference is None else scaler.reference
        units = torch.from_numpy(scaler.std / reference)
        found: dict[str, list[np.ndarray]] = {kind: [] for kind in self.inputs}
        with evaluating(model) as device:
            for first in range(0, len(self.places), EVALUATION_BATCH):
                own = slice(first, first + EVALUATION_BATCH)
                batch = self.windows.test.batch(self.places[own])
                seen = torch.ones_like(batch.y) if batch.observed is None else batch.observed
                for kind, x in self.inputs.items():
                    inputs = strategy.inputs(x[own].to(device))
                    beside = beside_windows(to_device(batch, device))
                    answer = model(inputs, *beside).float().cpu()
                    square = ((answer - batch.y) * units).square() * seen
                    mean = square.sum((1, 2)) / seen.sum((1, 2)).clamp_min(1)
                    found[kind].append(mean.double().numpy())
        return {kind: np.concatenate(parts) for kind, parts in found.items()}


def summarise(errors: Mapping[str, np.ndarray | list[float]]) -> dict[str, float]:
    """Clean MSE, mean fault MSE, the degradation of every fault and the largest."""
    mean = {kind: float(np.mean(own)) for kind, own in errors.items()}
    clean = mean.pop(CLEAN)
    degradation = {f"degradation_{kind}": error / clean for kind, error in mean.items()}
    return {
        "clean_mse": clean,
        "mean_fault_mse": float(np.mean(list(mean.values()))),
        "worst_degradation": max(degradation.values()),
        **degradation,
    }


def check_faults(run: Run, data: AnyData) -> dict[str, Any]:
    """Errors of a run, with its strategy, under faults at test."""
    return _check(run, data, run.load_model(), run.strategy)


def check_protected(run: Run, data: AnyData) -> dict[str, Any]:
    """The same for the network of a run behind a window guard, without retraining.

    The guard is fitted on the rows that the run was trained on.
    """
    model: nn.Module = protect(run.load_model(), fit_guard_of(run, _refuse_others(data)))
    return _check(run, data, model, run.strategy)


def fit_guard_of(run: Run, data: ForecastingData) -> WindowGuard:
    """A guard of z-scored windows, fitted on the rows that a run was trained on."""
    trained: Any = corrupt_training(data, run.settings.contamination, seed=run.settings.seed)
    scaled = replace(trained, values=run.scaler.transform(trained.values))
    return Guard(window=run.settings.input_len).fit(scaled).module()


def _check(run: Run, data: AnyData, model: nn.Module, strategy: Strategy) -> dict[str, Any]:
    errors = FaultTest.make(run, _refuse_others(data)).errors(model, strategy)
    return {
        "test": summarise(errors),
        "blocks": {kind: block_means(own) for kind, own in errors.items()},
    }


def block_means(values: np.ndarray) -> list[float]:
    """Means of blocks of neighbouring windows that are equally long, but for one window."""
    parts = np.array_split(values, min(BLOCKS, len(values)))
    return [float(part.mean()) for part in parts]


def _refuse_others(data: AnyData) -> ForecastingData:
    if not isinstance(data, ForecastingData):
        raise ArgumentError("faults at test are for forecasting.")
    return data


def check_last_epoch(run: Run, data: AnyData) -> dict[str, Any]:
    """Test results of the last epoch's weights, by names that end in `_last`."""
    trained = Predictor.load(run).trained
    weights = read_weights(run.folder / "last.safetensors")
    trained.model.load_state_dict(strip_state_dict(weights))
    windows = run.task.windows(run.settings, data, scaler=run.scaler)
    found = run.task.evaluate(trained, windows, data)
    return {"test": {f"{name}_last": value for name, value in found.row.items()}}


def check_random_scores(run: Run, data: AnyData) -> dict[str, Any]:
    """VUS-PR and AUC-PR of uniform scores, drawn by the seed of the run."""
    if not isinstance(data, AnomalyData):
        raise ArgumentError("random scores are for anomaly detection.")
    scores = np.random.default_rng(run.settings.seed).random(len(data.labels))
    sizes = [len(segment.test) for segment in data.segments]
    borders = np.repeat(np.arange(len(sizes)), sizes)
    measures = evaluate_scores(scores, data.labels, 0.5, segments=borders).measures
    return {"test": {name: measures[name] for name in ("auc_pr", "vus_pr")}}
