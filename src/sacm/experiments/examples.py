"""What the figures of a comparison show, read off its runs as plain arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from sacm.core.mapper import RateMapper
from sacm.core.scorer import SpectralScorer
from sacm.data.batches import WindowBatches
from sacm.errors import ArgumentError
from sacm.files import read_weights
from sacm.inject.sites import MODULATOR
from sacm.reports.figures import AnomalyStrip, ForecastExample
from sacm.strategies.registry import parts_of
from sacm.strategies.sacm import SACM
from sacm.tasks.anomaly import step_scores
from sacm.tasks.base import evaluating, to_device
from sacm.tasks.forecasting import forecast
from sacm.training.run import Run

_WINDOWS = 1024  # training windows whose rates are drawn
_TEST_WINDOWS = 2048  # test windows among which examples are looked for
_STEPS = 20_000  # rows of a strip of anomaly scores


@dataclass(frozen=True)
class RateSample:
    """Training windows of one run `[N, L, C]` with their scores and rates `[N]`."""

    learned: bool  # whether scorer and mapper are the run's own
    windows: np.ndarray
    scores: np.ndarray
    rates: np.ndarray


def rate_sample(run: Run, data: Any) -> RateSample:
    """Score training windows in the order of training, by the run's own scorer if it has one."""
    settings, strategy = run.settings, run.strategy
    windows = run.task.windows(settings, data)
    scorer, mapper, learned = _modulation(run, data.channels)
    size = min(settings.batch_size, len(windows.train))
    batches = WindowBatches(windows.train, size, shuffle=True, drop_last=True, seed=settings.seed)
    seen, scores, rates = [], [], []
    with torch.no_grad():
        for batch in batches:
            seen.append(strategy.inputs(batch.x))
            scores.append(scorer(seen[-1]).scores)
            rates.append(mapper(scores[-1]))
            if len(scores) * size >= _WINDOWS:
                break
    drawn, found, mapped = (torch.cat(parts).numpy() for parts in (seen, scores, rates))
    return RateSample(learned, drawn, found, mapped)


def _modulation(run: Run, channels: int) -> tuple[SpectralScorer, RateMapper, bool]:
    """Scorer and mapper as trained; fresh ones where the run has none, or registered ones."""
    method = next((part for part in parts_of(run.strategy) if isinstance(part, SACM)), SACM())
    scorer, mapper = SpectralScorer(channels, method.config()), RateMapper(method.config())
    learned = False
    if (method.scorer, method.mapper) != (SACM().scorer, SACM().mapper):
        return scorer, mapper, learned
    weights = read_weights(run.folder / "best.safetensors")
    for name, module in (("scorer", scorer), ("mapper", mapper)):
        prefix = f"{MODULATOR}.{name}."
        state = {k.removeprefix(prefix): v for k, v in weights.items() if k.startswith(prefix)}
        if state and state.keys() == module.state_dict().keys():
            module.load_state_dict(state)
            learned = True
    return scorer, mapper, learned


def forecast_examples(runs: Mapping[str, Run], data: Any) -> tuple[list[ForecastExample], int]:
    """The windows of largest, median and least gain of the last strategy over the first.

    Looks at every channel of at most 2048 evenly spread test windows, and says at how many.
    """
    first, *_, last = runs
    test = runs[first].task.windows(runs[first].settings, data).test
    chosen = np.linspace(0, len(test) - 1, min(_TEST_WINDOWS, len(test))).astype(int)
    predictions = {name: _forecasts(run, test, chosen) for name, run in runs.items()}
    batch = test.batch(chosen)
    errors = {name: (each - batch.y).abs().mean(dim=1) for name, each in predictions.items()}
    order = (errors[first] - errors[last]).flatten().argsort(descending=True)  # [N * C]
    middle = order[len(order) // 2]
    picks = {"largest gain": order[0], "median gain": middle, "largest loss": order[-1]}

    def raw(values: torch.Tensor, window: int, channel: int) -> np.ndarray:
        series = None if batch.series is None else batch.series[window : window + 1].numpy()
        scaler = test.scaler if series is None else test.scaler.of_places(series)
        return np.asarray(scaler.inverse(values[window : window + 1])[0, :, channel])

    columns = getattr(data, "columns", range(data.channels))
    names = [f"channel {name}" if str(name).isdigit() else str(name) for name in columns]
    examples = []
    for label, pick in picks.items():
        window, channel = divmod(int(pick), data.channels)
        examples.append(
            ForecastExample(
                label=label,
                channel=names[channel],
                history=raw(batch.x, window, channel),
                truth=raw(batch.y, window, channel),
                forecasts={n: raw(p, window, channel) for n, p in predictions.items()},
                errors={n: float(e[window, channel]) for n, e in errors.items()},
            )
        )
    return examples, len(chosen)


def _forecasts(run: Run, windows: Any, chosen: np.ndarray) -> torch.Tensor:
    model, strategy, parts = run.load_model(), run.strategy, []
    with evaluating(model) as device:
        for indices in np.array_split(chosen, max(1, len(chosen) // 256)):
            batch = to_device(windows.batch(indices), device)
            parts.append(forecast(model, batch, strategy.inputs(batch.x)).float().cpu())
    return torch.cat(parts).clone()  # out of inference mode


def anomaly_strip(runs: Mapping[str, Run], data: Any) -> AnomalyStrip:
    """The test segment with most anomalies (at most 20,000 rows of it), scored by each run."""
    labels = np.asarray(data.labels).astype(int)
    counts = [
        (np.diff(labels[each.test.start : each.test.stop], prepend=0) == 1).sum()
        for each in data.segments
    ]
    segment = data.segments[int(np.argmax(counts))]
    rows = slice(segment.test.start, min(segment.test.stop, segment.test.start + _STEPS))
    scores = {}
    for name, run in runs.items():
        windows = run.task.windows(run.settings, data).test
        inside = (windows.starts >= rows.start) & (windows.starts + windows.length <= rows.stop)
        if not inside.any():
            raise ArgumentError(f"no window lies within rows {rows.start} … {rows.stop - 1}.")
        windows.starts = windows.starts[inside]
        scores[name] = step_scores(run.load_model(), windows, run.settings, run.strategy)[rows]
    thresholds = {name: run.metrics["report"]["threshold"] for name, run in runs.items()}
    return AnomalyStrip(segment.name, rows.start, labels[rows], scores, thresholds)
