"""What the figures of a comparison show, read off its runs as plain arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from sacm.core.mapper import RateMapper
from sacm.core.scorer import SpectralScorer
from sacm.data.loader import WindowBatches
from sacm.errors import ArgumentError
from sacm.files import read_weights
from sacm.inject.sites import MODULATOR
from sacm.strategies import mappers, scorers
from sacm.strategies.adaptive import SACM
from sacm.strategies.base import Strategy
from sacm.strategies.registry import Combined
from sacm.tasks.anomaly import step_scores
from sacm.tasks.base import evaluating, to_device
from sacm.tasks.forecasting import forecast
from sacm.training.run import Run

_WINDOWS = 1024  # training windows whose rates are drawn
_TEST_WINDOWS = 2048  # test windows among which examples are looked for
_STEPS = 20_000  # rows of a strip of anomaly scores


@dataclass(frozen=True)
class SpectralView:
    """One channel of a window, and what the scorer's mask keeps of it."""

    score: float
    channel: str
    values: np.ndarray  # [L]
    kept: np.ndarray  # [L]
    amplitude: np.ndarray  # [K]
    mask: np.ndarray  # [K]


@dataclass(frozen=True)
class RateSample:
    """Training windows of one run: scores and rates [N], the most and the least reliable."""

    strategy: str
    learned: bool
    scores: np.ndarray
    rates: np.ndarray
    reliable: SpectralView
    unreliable: SpectralView


@dataclass(frozen=True)
class ForecastExample:
    """One channel of one test window, in raw units."""

    label: str
    channel: str
    history: np.ndarray  # [L]
    truth: np.ndarray  # [H]
    forecasts: dict[str, np.ndarray]  # strategy -> [H]
    errors: dict[str, float]  # strategy -> mean absolute error, scaled


@dataclass(frozen=True)
class AnomalyStrip:
    """Scores of consecutive test rows [T] for each strategy, with the labels [T]."""

    segment: str
    first_row: int
    labels: np.ndarray
    scores: dict[str, np.ndarray]
    thresholds: dict[str, float]


def rate_sample(run: Run, data: Any) -> RateSample:
    """Score training windows in the order of training, by the run's own scorer if it has one."""
    settings, strategy = run.settings, run.strategy
    windows = run.task.windows(settings, data)
    scorer, mapper, learned = _modulation(run, strategy, data.channels)
    size = min(settings.batch_size, len(windows.train))
    batches = WindowBatches(windows.train, size, shuffle=True, drop_last=True, seed=settings.seed)
    inputs, scores, rates = [], [], []
    with torch.no_grad():
        for batch in batches:
            x = strategy.inputs(batch.x)
            inputs.append(x)
            scores.append(scorer(x).scores)
            rates.append(mapper(scores[-1]))
            if len(inputs) * size >= _WINDOWS:
                break
        reliable, unreliable = _ends(scorer, torch.cat(inputs), _names(data))
    return RateSample(
        strategy=settings.strategy,
        learned=learned,
        scores=torch.cat(scores).numpy(),
        rates=torch.cat(rates).numpy(),
        reliable=reliable,
        unreliable=unreliable,
    )


def _names(data: Any) -> tuple[str, ...]:
    columns = getattr(data, "columns", range(data.channels))
    return tuple(f"channel {name}" if str(name).isdigit() else str(name) for name in columns)


def _modulation(
    run: Run, strategy: Strategy, channels: int
) -> tuple[SpectralScorer, RateMapper, bool]:
    """Scorer and mapper as trained; fresh ones where the run has none, or registered ones."""
    parts = strategy.parts if isinstance(strategy, Combined) else (strategy,)
    method = next((part for part in parts if isinstance(part, SACM)), SACM())
    scorer, mapper = SpectralScorer(channels, method.config()), RateMapper(method.config())
    weights = read_weights(run.folder / "best.safetensors")
    learned = False
    if method != replace(method, scorer=scorers.DEFAULT, mapper=mappers.DEFAULT):
        return scorer, mapper, learned  # there is no spectrum to show of another scorer
    for name, module in (("scorer", scorer), ("mapper", mapper)):
        prefix = f"{MODULATOR}.{name}."
        own = {k.removeprefix(prefix): v for k, v in weights.items() if k.startswith(prefix)}
        if own and own.keys() == module.state_dict().keys():
            module.load_state_dict(own)
            learned = True
    return scorer, mapper, learned


def _ends(
    scorer: SpectralScorer, windows: torch.Tensor, names: tuple[str, ...]
) -> tuple[SpectralView, SpectralView]:
    """The most and the least reliable of the windows [N, L, C], in one channel.

    The channel is the worst of the least reliable window; windows that hardly move in it have
    nothing to show and are passed over.
    """
    found = scorer(windows)
    least = int(found.scores.argmax())
    channel = int(found.channel_scores[least].argmax())
    motion = windows[:, :, channel].std(dim=1, correction=0)
    scores = torch.where(motion >= 0.1 * motion[least], found.scores, torch.inf)
    most = int(scores.argmin())
    first, second = _views(scorer, windows[[most, least]], channel, names[channel])
    return first, second


def _views(
    scorer: SpectralScorer, windows: torch.Tensor, channel: int, name: str
) -> list[SpectralView]:
    """One channel of the windows [N, L, C]."""
    found = scorer(windows)
    detrended = windows[:, :, channel] - found.trend[:, :, channel]
    amplitude = torch.fft.rfft(detrended).abs()  # [B, K]
    return [
        SpectralView(
            score=float(found.scores[i]),
            channel=name,
            values=windows[i, :, channel].numpy(),
            kept=found.reconstruction[i, :, channel].numpy(),
            amplitude=amplitude[i].numpy(),
            mask=found.mask[i, :, channel].numpy(),
        )
        for i in range(len(windows))
    ]


def spectral_views(windows: np.ndarray, columns: tuple[str, ...]) -> list[SpectralView]:
    """Each of the windows [N, L, C], by a fresh scorer, in its own least reliable channel."""
    scorer = SpectralScorer(windows.shape[2])
    found = []
    with torch.no_grad():
        for window in torch.from_numpy(np.ascontiguousarray(windows)):
            channel = int(scorer(window[None]).channel_scores[0].argmax())
            found += _views(scorer, window[None], channel, columns[channel])
    return found


def forecast_examples(runs: Mapping[str, Run], data: Any) -> tuple[list[ForecastExample], int]:
    """The windows of largest, median and least gain of the last strategy over the first.

    Looks at every channel of at most 2048 evenly spread test windows, and says at how many.
    """
    first, *_, last = runs
    test = runs[first].task.windows(runs[first].settings, data).test
    chosen = np.linspace(0, len(test) - 1, min(_TEST_WINDOWS, len(test))).astype(int)
    predictions = {name: _forecasts(run, data, test, chosen) for name, run in runs.items()}
    batch = test.batch(chosen)
    errors = {name: (each - batch.y).abs().mean(dim=1) for name, each in predictions.items()}
    better = (errors[first] - errors[last]).flatten()  # [N * C]
    order = better.argsort(descending=True)
    middle = order[len(order) // 2]
    picks = {"largest gain": order[0], "median gain": middle, "largest loss": order[-1]}

    def raw(values: torch.Tensor, window: int, channel: int) -> np.ndarray:
        series = None if batch.series is None else batch.series[window : window + 1].numpy()
        scaler = test.scaler if series is None else test.scaler.of_places(series)
        return np.asarray(scaler.inverse(values[window : window + 1])[0, :, channel])

    examples = []
    for label, pick in picks.items():
        window, channel = divmod(int(pick), data.channels)
        examples.append(
            ForecastExample(
                label=label,
                channel=_names(data)[channel],
                history=raw(batch.x, window, channel),
                truth=raw(batch.y, window, channel),
                forecasts={n: raw(p, window, channel) for n, p in predictions.items()},
                errors={n: float(e[window, channel]) for n, e in errors.items()},
            )
        )
    return examples, len(chosen)


def _forecasts(run: Run, data: Any, windows: Any, chosen: np.ndarray) -> torch.Tensor:
    model, strategy, parts = run.load_model(), run.strategy, []
    with evaluating(model) as device:
        for indices in np.array_split(chosen, max(1, len(chosen) // 256)):
            batch = to_device(windows.batch(indices), device)
            parts.append(forecast(model, batch, strategy.inputs(batch.x)).float().cpu())
    return torch.cat(parts).clone()  # out of inference mode


def confusion(runs: list[Run]) -> np.ndarray:
    """Counts [true class, predicted class], summed over the runs."""
    return np.asarray(np.sum([run.metrics["report"]["confusion"] for run in runs], axis=0))


def anomaly_strip(runs: Mapping[str, Run], data: Any) -> AnomalyStrip:
    """The test segment with most anomalies (at most 20,000 rows of it), scored by each run."""
    counts = [_intervals(data.labels[s.test.start : s.test.stop]) for s in data.segments]
    segment = data.segments[int(np.argmax(counts))]
    stop = min(segment.test.stop, segment.test.start + _STEPS)
    rows = slice(segment.test.start, stop)
    scores = {}
    for name, run in runs.items():
        windows = run.task.windows(run.settings, data).test
        inside = (windows.starts >= rows.start) & (windows.starts + windows.length <= rows.stop)
        if not inside.any():
            raise ArgumentError(f"no window lies within rows {rows.start} … {rows.stop - 1}.")
        windows.starts = windows.starts[inside]
        model = run.load_model()
        scores[name] = step_scores(model, windows, run.settings, run.strategy)[rows]
    return AnomalyStrip(
        segment=segment.name,
        first_row=rows.start,
        labels=np.asarray(data.labels[rows]),
        scores=scores,
        thresholds={name: run.metrics["report"]["threshold"] for name, run in runs.items()},
    )


def _intervals(labels: np.ndarray) -> int:
    return int((np.diff(labels.astype(int), prepend=0) == 1).sum())
