"""Corrupt arrays, tensors and data sets on purpose, by a fault of any kind.

Faults are kept by name in one registry. The library has noise in every value and the faults of its
demo; plug-ins add theirs. Faults of a series hit single steps or segments of 24 to 95 steps (in
short series a fortieth to a tenth of the rows); sizes are in standard deviations of the channel.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Generator, Tensor

from sacm import registry
from sacm.data.datasets import AnomalyData, AnyData, ClassificationData, ForecastingData, as_numpy
from sacm.data.scaling import fill_data
from sacm.data.synthetic import SEED_STEP, add_layered_noise
from sacm.errors import ArgumentError
from sacm.registry import Registry

ORIGINAL = "original"
MIX = ("points", "burst", "stuck", "zero")
_TRIES, _STRICT_TRIES = 5000, 3000  # at drawing a segment; after the second, it may overlap others
_OVERLAP = 0.2  # the share of a segment that may overlap other kinds of a mixture
_DEGREES_OF_FREEDOM = 2.5
_SHORTEST_LAYERED = 6
_USUAL_RATIO = 0.3


@dataclass
class Channel:
    """One channel while faults are put into it, in place."""

    values: np.ndarray  # [T] float64
    kinds: np.ndarray  # [T] codes of the faults so far, 0 for untouched steps
    centre: float  # mean of the original channel
    size: float  # one deviation of the original channel, times the severity
    mixed: bool = False  # whether other kinds share it, so that segments may overlap a little


class DrawnOffsets(NamedTuple):
    """Random numbers for single steps, in deviations; all are drawn whatever the kind."""

    sign: np.ndarray
    normal: np.ndarray
    spike: np.ndarray
    far: np.ndarray


Targets = Literal["clean", "same"]
# Corrupts about a share of a channel and marks what it corrupted with a code.
SeriesFault = Callable[[Channel, float, int, np.random.Generator], None]
PointChange = Callable[[np.ndarray, Channel, DrawnOffsets], np.ndarray]
SegmentChange = Callable[[np.ndarray, Channel, np.random.Generator], np.ndarray | float]
ValueFault = Callable[[np.ndarray, float, int], np.ndarray]
LabelFault = Callable[[np.ndarray, int, float, np.random.Generator], np.ndarray]
WindowFault = Callable[[Tensor, Tensor, Generator], Tensor]
Corruptible = TypeVar("Corruptible", np.ndarray, Tensor, ForecastingData)
Function = TypeVar("Function", bound=ValueFault)


@dataclass(frozen=True)
class Fault:
    """What one kind of fault does to data of each form; None where it is not defined."""

    title: str
    series: SeriesFault | None = None  # made by `at_points` or `on_segments`
    windows: WindowFault | None = None  # z-scored windows [B, L, C] by severities [B]
    values: ValueFault | None = None  # every value of an array [..., C], by level and seed
    rows: ValueFault | None = None  # a share of the rows of telemetry [T, C], by ratio and seed
    labels: LabelFault | None = None  # wrong labels instead of class numbers [N]
    parts: tuple[str, ...] = ()  # of a mixture; each gets an equal share of the ratio
    largest: float = np.inf  # level of `values`


CORRUPTIONS: Registry[Fault] = registry.CORRUPTIONS


class CorruptedSeries(NamedTuple):
    """Values [T, C], which of them were corrupted (bool), and their kinds (uint8)."""

    values: np.ndarray
    corrupted: np.ndarray
    kinds: np.ndarray


def register(name: str, *, largest: float = np.inf) -> Callable[[Function], Function]:
    """Give a decorator that makes a corruption of every value available to `sacm.data.corrupt`.

    The function gets a float64 array `[..., C]`, which it must not change, the level (0 to
    `largest`; 0 changes nothing) and a seed; it returns an array of the same shape. Faults of other
    forms are registered as `CORRUPTIONS.register(name)(Fault(...))`.

    Example:
        >>> import numpy as np
        >>> import sacm
        >>> from sacm.data.corrupt import register
        >>> from sacm.registry import temporary_entries
        >>> with temporary_entries():
        ...     @register("clip", largest=1.0)
        ...     def clip(x, level, seed):
        ...         limit = (1 - level) * np.abs(x).max()
        ...         return x.clip(-limit, limit)
        ...     sacm.data.corrupt(np.array([1.0, -4.0]), "clip", 0.5)
        array([ 1., -2.])
    """

    def add(function: Function) -> Function:
        title = (function.__doc__ or name).partition("\n")[0].rstrip(".")
        fault = Fault(title, values=function, largest=largest)
        CORRUPTIONS.register(name, origin=function)(fault)
        return function

    return add


def series_kinds() -> tuple[str, ...]:
    """Names of the codes in `CorruptedSeries.kinds`; the first is an untouched value."""
    return (ORIGINAL, *(name for name, fault in CORRUPTIONS.items() if fault.series is not None))


def corrupt(
    x: Corruptible,
    kind: str = "gaussian",
    level: float = 0.3,
    *,
    seed: int = 0,
    targets: Targets = "clean",
) -> Corruptible:
    """Corrupt values, or the inputs of a data set.

    Args:
        x: An array or tensor whose last axis are channels (or `[T]`), or a `ForecastingData`.
        kind: gaussian and student_t (2.5 degrees of freedom) add noise of `level` times the spread
            of each channel; missing sets a share `level` of the entries to 0; layered is the
            mixture of Synth-12 along the first axis. Every other fault corrupts a share `level` of
            a series.
        level: How much.
        seed: Of the random draw.
        targets: What a `ForecastingData` is to forecast: its clean values ("clean"), or the
            corrupted ones ("same"). Values that are gone are interpolated and not observed.

    Raises:
        ArgumentError: There is no such fault, or it does not fit the data or the level.

    Example:
        >>> float((corrupt(np.ones((50, 2)), "missing", 0.3) == 0).mean()) > 0.2
        True
    """
    if isinstance(x, ForecastingData):
        values = corrupt(x.values, kind, level, seed=seed)
        return replace(x, **_changed_fields(x, values, targets))
    if isinstance(x, Tensor):
        array: Any = corrupt(as_numpy(x), kind, level, seed=seed)
        tensor = torch.from_numpy(array).to(x.device)
        return tensor.to(x.dtype) if x.is_floating_point() else tensor
    if not isinstance(x, np.ndarray) or x.dtype.kind not in "fiub" or x.ndim == 0:
        raise ArgumentError(
            "corrupt takes numbers [T] or [..., C], an array, a tensor or ForecastingData, not "
            f"{type(x).__name__} of shape {list(np.shape(x))}."
        )
    fault = CORRUPTIONS.get(kind)
    largest = fault.largest if fault.values else 1.0
    if not 0 <= level <= largest:
        raise ArgumentError(f"The level of {kind} must be in 0 … {largest:g}, got {level}.")
    array = np.asarray(x, dtype=np.float64)
    rows = array if array.ndim > 1 else array[:, None]
    if fault.values is not None:
        result = np.asarray(fault.values(rows, level, seed))
    else:
        result = corrupt_series(rows, kind, level, seed=seed).values
    return result.reshape(array.shape).astype(x.dtype if x.dtype.kind == "f" else np.float64)


def corrupt_series(
    values: np.ndarray, kind: str, ratio: float, *, severity: float = 1.0, seed: int = 0
) -> CorruptedSeries:
    """Corrupt a share `ratio` of the values of every channel of a series `[T, C]`, and say which.

    The kinds of a mixture share the ratio; `severity` multiplies the size of every fault. Values
    come back in the precision of the input, NaN where a value was removed.

    Example:
        >>> rows = np.random.default_rng(0).normal(size=(500, 2))
        >>> values, corrupted, kinds = corrupt_series(rows, "mix", 0.3, seed=1)
    """
    values = np.asarray(values)
    parts = series_parts(kind)
    if values.ndim != 2 or values.dtype.kind != "f" or len(values) < 2:
        raise ArgumentError(
            f"{kind} needs a series of floating-point numbers [T, C] with T of 2 or more, got "
            f"{values.dtype} of shape {list(values.shape)}."
        )
    if not 0 <= ratio <= 1:
        raise ArgumentError(f"ratio must lie between 0 and 1, got {ratio}.")
    if not 0 < severity < np.inf:
        raise ArgumentError(f"severity must be a positive number, got {severity}.")
    random = np.random.default_rng(seed)
    deviation, centre = np.nanstd(values, axis=0), np.nanmean(values, axis=0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    result, kinds = values.astype(np.float64), np.zeros(values.shape, dtype=np.uint8)
    codes = {name: code for code, name in enumerate(series_kinds())}
    for c in range(values.shape[1]):
        size = severity * deviation[c]
        channel = Channel(result[:, c], kinds[:, c], centre[c], size, len(parts) > 1)
        for name, fault in parts.items():
            fault(channel, ratio / len(parts), codes[name], random)
    hit = kinds > 0
    return CorruptedSeries(np.where(hit, result.astype(values.dtype), values), hit, kinds)


def series_parts(kind: str) -> dict[str, SeriesFault]:
    """Give the faults of a kind by name: itself, or those of a mixture."""
    kinds = CORRUPTIONS.get(kind).parts or (CORRUPTIONS.entry(kind).name,)
    parts = {name: CORRUPTIONS.get(name).series for name in kinds}
    defined = {name: series for name, series in parts.items() if series is not None}
    if len(defined) < len(parts):
        usable = ", ".join(n for n, fault in CORRUPTIONS.items() if fault.series or fault.parts)
        raise ArgumentError(f"the fault {kind!r} is not defined for series: use {usable}.")
    return defined


def parse_contamination(text: str) -> tuple[str, float]:
    """Fault and share of a text such as `mix(0.3)`; without a share it is 0.3.

    Example:
        >>> parse_contamination("MIX(.1)")
        ('mix', 0.1)
    """
    match = re.fullmatch(r"([^(]+)(?:\((\d*\.?\d+)\))?", text.replace(" ", ""))
    ratio = float(match[2] or _USUAL_RATIO) if match else 0.0
    if match is None or not 0 < ratio <= 1:
        raise ArgumentError(
            f"contamination {text!r}: write a fault and a share in (0, 1], such as mix(0.3)."
        )
    return CORRUPTIONS.entry(match[1]).name, ratio


def corrupt_training(data: AnyData, contamination: str, *, seed: int = 0) -> AnyData:
    """Corrupt the training and validation part of a data set; the test part stays unchanged.

    Forecasting: rows, so inputs and targets; `broken` says which values. Classification: labels.
    Anomaly detection: training rows.

    Args:
        data: One of the three data sets.
        contamination: A fault and a share, such as "mix(0.3)"; an empty text changes nothing.
        seed: Seed of the positions and sizes of faults.
    """
    if not contamination:
        return data
    kind, ratio = parse_contamination(contamination)
    fault = CORRUPTIONS.get(kind)
    if isinstance(data, ClassificationData):
        if fault.labels is None:
            usable = ", ".join(name for name, each in CORRUPTIONS.items() if each.labels)
            raise ArgumentError(f"{kind} does not corrupt labels of {data.name}: use {usable}.")
        codes, random = data.encode(data.y_train), np.random.default_rng(seed)
        wrong = fault.labels(codes, len(data.classes), ratio, random)
        labels = np.asarray(data.classes)[wrong].astype(data.y_train.dtype)
        return replace(data, y_train=labels)
    if isinstance(data, AnomalyData):
        return replace(data, train=_corrupt_telemetry(data, kind, ratio, seed))
    values, hit = data.values.copy(), np.zeros(data.values.shape, dtype=bool)
    ranges = [rows for split in ("train", "val") for rows in data.ranges(split)]
    for number, rows in enumerate(ranges):
        segment = slice(rows.start, rows.stop)
        result = corrupt_series(data.values[segment], kind, ratio, seed=seed + number)
        values[segment], hit[segment] = result.values, result.corrupted
    fields = _changed_fields(data, values, "same")
    if data.targets is not None:  # test targets stay unchanged
        test = slice(data.splits.test.start, data.splits.test.stop)
        fields["targets"] = fields["values"].copy()
        fields["targets"][test] = data.targets[test]
    return replace(data, **fields, broken=hit)


def _corrupt_telemetry(data: AnomalyData, kind: str, ratio: float, seed: int) -> np.ndarray:
    """Training rows `[T, C]`, each segment corrupted by itself."""
    train, by_rows = data.train.copy(), CORRUPTIONS.get(kind).rows
    for number, segment in enumerate(data.segments):
        rows = slice(segment.train.start, segment.train.stop)
        if len(segment.train) < 2:
            continue
        if by_rows is not None:
            train[rows] = by_rows(train[rows], ratio, seed + number)
        else:
            train[rows] = corrupt_series(train[rows], kind, ratio, seed=seed + number).values
    # Detectors read numbers only: a value that is gone keeps what it was.
    return np.where(np.isnan(train), data.train, train)


def _changed_fields(data: ForecastingData, values: np.ndarray, targets: Targets) -> dict[str, Any]:
    """The fields of a data set with other values; those that are NaN are interpolated."""
    if targets not in ("clean", "same"):
        raise ArgumentError(f"targets must be clean or same, got {targets!r}.")
    filled, _ = fill_data(replace(data, values=values))
    if targets == "clean":
        return {"values": filled.values, "targets": data.clean}
    return {"values": filled.values, "targets": None, "observed": filled.observed}


def at_points(change: PointChange, *, isolated: bool = False) -> SeriesFault:
    """Make a fault of single steps, no two in a row if they are `isolated`.

    `change` gets the values of the chosen steps, the channel and random numbers for them.
    """

    def fault(channel: Channel, share: float, code: int, random: np.random.Generator) -> None:
        hit = (random.random(len(channel.values)) < share) & (channel.kinds == 0)
        if isolated:
            hit[1:] &= ~hit[:-1]
        count = int(hit.sum())
        drawn = DrawnOffsets(
            random.choice(np.array([-1.0, 1.0]), count),
            random.standard_normal(count),
            random.uniform(3, 8, count),
            random.uniform(12, 40, count),
        )
        channel.values[hit] = change(channel.values[hit], channel, drawn)
        channel.kinds[hit] = code

    return fault


def on_segments(change: SegmentChange) -> SeriesFault:
    """Make a fault of segments: `change` gets the values of one, and returns what replaces them."""

    def fault(channel: Channel, share: float, code: int, random: np.random.Generator) -> None:
        rows, done = len(channel.values), 0
        shortest, longest = max(4, min(24, rows // 40)), max(8, min(96, rows // 10))
        slack = _OVERLAP if channel.mixed else 0.0
        for trial in range(_TRIES):
            if done >= share * rows:
                return
            length = int(random.integers(shortest, longest))
            first = int(random.integers(1, max(2, rows - length)))
            around = channel.kinds[first - 1 : first + length + 1]
            if trial < _STRICT_TRIES and np.mean(around > 0) > slack:
                continue
            segment = slice(first, first + length)
            channel.values[segment] = change(channel.values[segment], channel, random)
            channel.kinds[segment] = code
            done += length

    return fault


def put(value: float) -> SegmentChange:
    """Make a change that puts one number in place of a segment."""
    return lambda segment, channel, random: value


def add_burst(segment: np.ndarray, channel: Channel, random: np.random.Generator) -> np.ndarray:
    """Add white noise of 1.5 deviations."""
    return segment + 1.5 * channel.size * random.standard_normal(len(segment))


def hold_first(segment: np.ndarray, channel: Channel, random: np.random.Generator) -> float:
    """Hold the first value."""
    return float(segment[0])


def add_noise(draw: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]) -> ValueFault:
    """Make a fault that adds drawn numbers of `level` times the spread of each channel."""
    return lambda x, level, seed: np.asarray(
        x + level * spread_of(x) * draw(np.random.default_rng(seed), x.shape)
    )


def blank_entries(x: np.ndarray, level: float, seed: int) -> np.ndarray:
    """Set a share `level` of the entries to 0."""
    return np.asarray(np.where(np.random.default_rng(seed).random(x.shape) < level, 0.0, x))


def spread_of(x: np.ndarray) -> np.ndarray:
    """Standard deviation `[C]` of each channel of `[..., C]`; 1 where a channel is constant."""
    spread = x.std(axis=tuple(range(x.ndim - 1)))
    return np.where(spread > 0, spread, 1.0)


def add_layers(x: np.ndarray, level: float, seed: int) -> np.ndarray:
    """Add the mixture of Synth-12, scaled by the spread of each channel."""
    if x.ndim != 2 or len(x) < _SHORTEST_LAYERED:
        raise ArgumentError(
            f"layered needs a series [T] or [T, C] of at least {_SHORTEST_LAYERED} steps, got "
            f"{list(x.shape)}."
        )
    spread = spread_of(x)
    columns = [
        add_layered_noise(column, level, seed + SEED_STEP * c)
        for c, column in enumerate((x / spread).T)
    ]
    return np.asarray(np.stack(columns, axis=1) * spread)


_BUILT_IN = {
    "missing": Fault(
        "segments are gone",
        series=on_segments(put(np.nan)),
        values=blank_entries,
        largest=1.0,
    ),
    "zero": Fault("segments read 0", series=on_segments(put(0.0))),
    "stuck": Fault("segments hold their first value", series=on_segments(hold_first)),
    "points": Fault(
        "single steps get normal errors of 3 deviations",
        series=at_points(lambda values, channel, drawn: values + channel.size * (3 * drawn.normal)),
    ),
    "burst": Fault("segments get noise of 1.5 deviations", series=on_segments(add_burst)),
    "mix": Fault(f"{', '.join(MIX)} in equal shares", parts=MIX),
    "gaussian": Fault(
        "normal noise in every value",
        values=add_noise(lambda random, shape: random.standard_normal(shape)),
    ),
    "student_t": Fault(
        "noise with heavy tails in every value",
        values=add_noise(lambda random, shape: random.standard_t(_DEGREES_OF_FREEDOM, shape)),
    ),
    "layered": Fault("the mixture of Synth-12 in every value", values=add_layers),
}
for _name, _fault in _BUILT_IN.items():
    CORRUPTIONS.register(_name)(_fault)
