"""Anomaly detection: each detector's own loss and score, a threshold from validation alone."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sacm.backbones.base import DetectorNetwork
from sacm.data.batches import TelemetryWindows, WindowBatches
from sacm.data.datasets import AnomalyData
from sacm.data.load import DATASETS
from sacm.data.windows import anomaly_windows
from sacm.errors import SACMError
from sacm.metrics.anomaly import evaluate_scores, quantile_threshold
from sacm.metrics.catalogue import compute_metrics
from sacm.quality.inspect import inspect
from sacm.settings import ResolvedSettings, RunSettings
from sacm.strategies.base import Step
from sacm.tasks.base import (
    EVALUATION_BATCH,
    FORECASTING_ONLY,
    Calibration,
    NetworkShape,
    Result,
    Scaler,
    Task,
    Trained,
    Windows,
    column_names,
    evaluating,
)
from sacm.tasks.baselines import alarm_baselines

_WINDOW, _BATCH, _QUANTILE = 100, 32, 0.95
FEWEST_NORMAL = 20  # validation rows that a threshold needs
LARGE = 3_000_000  # values; larger data are not inspected


class Anomaly(Task[AnomalyData]):
    """Anomaly detection: windows `[B, L, C]` to a score for every time step."""

    name = "anomaly"
    default_backbone = "TranAD"
    default_strategy = "raw"
    selections = ("loss",)
    unused = FORECASTING_ONLY
    leading_metrics = ("f1_pa", "f1", "vus_pr")

    def preset(self, settings: RunSettings, data: AnomalyData) -> dict[str, Any]:
        # Short telemetry gets windows of which validation holds a few.
        longest = min(len(data.train) // 10, len(data.test))
        return {"input_len": min(_WINDOW, max(1, longest)), "batch_size": _BATCH}

    def windows(
        self, settings: ResolvedSettings, data: AnomalyData, *, scaler: Scaler = None
    ) -> Windows:
        # The stride thins out validation and test windows too: detectors are slow to evaluate.
        length, stride = settings.input_len, settings.stride
        return anomaly_windows(data, length=length, stride=stride, scaler=scaler)

    def shape(
        self, settings: ResolvedSettings, data: AnomalyData, scaler: Scaler = None
    ) -> NetworkShape:
        names = column_names(data.columns)
        return NetworkShape(data.channels, settings.input_len, columns=names)

    def answer(self, model: Any, batch: Any, x: Tensor) -> Any:
        return model.anomaly_scores(x)

    def loss(self, step: Step, x: Tensor) -> Any:
        return step.model.training_loss(x)

    def validate(self, trained: Trained, batches: WindowBatches[Any]) -> float:
        model, _, strategy = trained
        assert isinstance(model, DetectorNetwork)
        total = 0.0
        with evaluating(model) as device:
            for batch in batches:
                x = strategy.inputs(batch.x.to(device))
                total += float(model.validation_loss(x)) * len(x)
        return total / len(batches.windows)

    def calibrate(self, trained: Trained, windows: Windows, data: AnomalyData) -> Calibration:
        """Scores of the validation rows that look normal, in their order, and the threshold."""
        scores = normal_scores(trained, windows, data)
        threshold = float(quantile_threshold(scores, quantile=_QUANTILE))
        return Calibration({"scores": torch.from_numpy(scores)}, {"threshold": repr(threshold)})

    def evaluate(self, trained: Trained, windows: Windows, data: AnomalyData) -> Result:
        threshold = quantile_threshold(normal_scores(trained, windows, data), quantile=_QUANTILE)
        scores, segments = step_scores(trained, windows.test), data.segment_names()
        result = judge_scores(scores, data.labels, threshold, trained.settings, segments=segments)
        return replace(result, evaluated=len(windows.test))


def judge_scores(
    scores: np.ndarray,
    labels: np.ndarray,
    threshold: float,
    settings: ResolvedSettings,
    *,
    segments: np.ndarray | None = None,
) -> Result:
    """Test scores `[T]` against labels `[T]`; `segments` `[T]` names the machine of each row."""
    report = evaluate_scores(scores, labels, threshold, segments=segments, seed=settings.seed)
    row = {**report.measures, **compute_metrics("anomaly", scores, labels, threshold, segments)}
    return Result(row, asdict(report), len(scores), alarm_baselines(report))


def normal_scores(trained: Trained, windows: Windows, data: AnomalyData) -> np.ndarray:
    """Scores of the validation rows `[T]` in which nothing looks broken or unusual.

    Flagged rows would raise the threshold to the level of a fault. Data sets of the
    catalogue are taken as they are, for their results are compared.
    """
    scores = step_scores(trained, windows.val)
    normal = scored = ~np.isnan(scores)
    if not DATASETS.find(data.name.partition("@")[0]) and data.train.size <= LARGE:
        with suppress(SACMError):  # too few rows to judge
            normal = scored & ~(inspect(data.train).flags > 0).any(axis=1)
    return scores[scored if normal.sum() < FEWEST_NORMAL else normal]


def step_scores(
    trained: Trained, windows: TelemetryWindows, *, order: np.ndarray | None = None
) -> np.ndarray:
    """A score for each row `[T]`: the mean over the windows that cover it, NaN where none does.

    A score that is not finite is refused by its row, which `order` `[T]` may number otherwise.
    """
    model, settings, strategy = trained
    assert isinstance(model, DetectorNetwork)
    total = torch.zeros(len(windows.telemetry), dtype=torch.float64)
    count = torch.zeros_like(total)
    with evaluating(model) as device:
        for batch in WindowBatches(windows, EVALUATION_BATCH):
            x = strategy.inputs(batch.x.to(device))
            # On the CPU, for not every accelerator has float64.
            scores = model.anomaly_scores(x, score=settings.score).cpu().double()  # [B, L]
            rows = (batch.positions[:, None] + torch.arange(windows.length)).flatten()
            total.index_add_(0, rows, scores.flatten())
            count.index_add_(0, rows, torch.ones_like(rows, dtype=torch.float64))
    result: np.ndarray = (total / count).numpy()
    # Compared with a threshold, NaN would read as no alarm.
    failed = np.flatnonzero((count > 0).numpy() & ~np.isfinite(result))
    if len(failed):
        row = failed[0] if order is None else order[failed[0]]
        raise SACMError(
            f"the anomaly score of row {row + 1} is not finite: look for extreme values in the "
            f"{windows.length} rows that begin with it."
        )
    return result
