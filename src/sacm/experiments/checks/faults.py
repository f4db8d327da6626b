"""Faults at test, as SensorFault-Bench has them (arXiv:2605.10822).

Inputs of test windows get one fault each, targets never. Severity is uniform, one draw a window,
the same for every fault. Sizes are in deviations of the clean training rows, whatever the scaler of
the run was fitted on. At most 2,000 windows are used, drawn once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sacm.data.contaminate import contaminate_by_text
from sacm.data.datasets import AnyData, ForecastingData
from sacm.data.scaling import ChannelScaler
from sacm.data.windows.batch import ForecastBatch
from sacm.data.windows.split import SplitWindows
from sacm.data.windows.windows import ForecastWindows, Indices, Windows, positions_array
from sacm.errors import ArgumentError
from sacm.experiments.checks.registry import CHECKS
from sacm.faults.windows import TESTED, break_windows
from sacm.quality.protect import protect
from sacm.quality.windows.fit import fit_window_guard
from sacm.strategies.base import Strategy
from sacm.training.run import Run

CLEAN = "clean"
MOST_WINDOWS = 2000
BLOCKS = 20  # of neighbouring windows, for bootstrap intervals
SEED = 0


class FaultyWindows(Windows[ForecastBatch]):
    """Some windows of others, with other inputs `[N, L, C]`."""

    def __init__(self, windows: ForecastWindows, places: np.ndarray, x: Tensor) -> None:
        self.windows, self.places, self.x = windows, places, x
        self.scaler = windows.scaler

    def __len__(self) -> int:
        return len(self.places)

    def batch(self, indices: Indices) -> ForecastBatch:
        """See `ForecastBatch`."""
        chosen = positions_array(indices)
        return self.windows.batch(self.places[chosen])._replace(x=self.x[chosen])


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
                clean.inverse(break_windows(z, kind, severity, seed=SEED + 100 + number))
            )
            for number, kind in enumerate(TESTED)
        }
        return cls(windows, places, {CLEAN: x, **broken})

    def errors(self, run: Run, model: Any, strategy: Strategy, data: Any) -> dict[str, list[float]]:
        """MSE of every block of neighbouring windows, by fault."""
        blocks = [part for part in np.array_split(np.arange(len(self.places)), BLOCKS) if len(part)]
        found: dict[str, list[float]] = {}
        for kind, x in self.inputs.items():
            for part in blocks:
                test = FaultyWindows(self.windows.test, self.places[part], x[part])
                split = self.windows._replace(test=test)
                result = run.task.evaluate(model, split, data, run.settings, strategy)
                found.setdefault(kind, []).append(float(result.row["mse"] or 0.0))
        return found

    def sizes(self) -> list[int]:
        """How many windows each block has."""
        return [len(part) for part in np.array_split(self.places, BLOCKS) if len(part)]


def summarise(blocks: dict[str, list[float]], sizes: list[int]) -> dict[str, float]:
    """Clean MSE, mean fault MSE, the degradation of every fault and the largest."""
    mean = {kind: float(np.average(own, weights=sizes)) for kind, own in blocks.items()}
    clean = mean.pop(CLEAN)
    degradation = {f"degradation_{kind}": error / clean for kind, error in mean.items()}
    return {
        "clean_mse": clean,
        "mean_fault_mse": float(np.mean(list(mean.values()))),
        "worst_degradation": max(degradation.values()),
        **degradation,
    }


@CHECKS.register("faults")
def check_faults(run: Run, data: AnyData) -> dict[str, Any]:
    """Errors of a run, with its strategy, under faults at test."""
    return _check(run, data, run.load_model(), run.strategy)


@CHECKS.register("protect")
def check_protected(run: Run, data: AnyData) -> dict[str, Any]:
    """The same for the network of a run behind a window guard, without retraining.

    The guard is fitted on the rows that the run was trained on.
    """
    _refuse_others(data)
    trained: Any = contaminate_by_text(data, run.settings.contamination, seed=run.settings.seed)
    stop = trained.splits.train.stop
    guard = fit_window_guard(
        run.scaler.transform(trained.values[:stop]),
        run.settings.input_len,
        pieces=list(trained.ranges("train")),
    )
    model: nn.Module = protect(run.load_model(), guard)
    return _check(run, data, model, run.strategy)


def _check(run: Run, data: AnyData, model: Any, strategy: Strategy) -> dict[str, Any]:
    series = _refuse_others(data)
    test = FaultTest.make(run, series)
    blocks, sizes = test.errors(run, model, strategy, series), test.sizes()
    return {"test": summarise(blocks, sizes), "blocks": blocks, "sizes": sizes}


def _refuse_others(data: AnyData) -> ForecastingData:
    if not isinstance(data, ForecastingData):
        raise ArgumentError("faults at test are for forecasting.")
    return data
