"""Corrupt arrays, tensors, windows and data sets on purpose, by a fault of any kind.

Faults are kept by name in one registry. The library has noise in every value and the four faults
of its demo; plug-ins add theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Generator, Tensor

from sacm import registry
from sacm.data import faults
from sacm.data.datasets import AnomalyData, AnyData, ClassificationData, ForecastingData, as_numpy
from sacm.data.faults import Channel, SeriesFault, at_points, on_segments
from sacm.data.scaling import fill_data
from sacm.data.synthetic import SEED_STEP, add_layered_noise
from sacm.errors import ArgumentError
from sacm.registry import Registry

Targets = Literal["clean", "same"]
ValueFault = Callable[[np.ndarray, float, int], np.ndarray]
LabelFault = Callable[[np.ndarray, int, float, np.random.Generator], np.ndarray]
WindowFault = Callable[[Tensor, Tensor, Generator], Tensor]
Corruptible = TypeVar("Corruptible", np.ndarray, Tensor, ForecastingData)
Function = TypeVar("Function", bound=ValueFault)
ORIGINAL = "original"
_SHORTEST_LAYERED = 6
_USUAL_RATIO = 0.3


@dataclass(frozen=True)
class Fault:
    """What one kind of fault does to data of each form; None where it is not defined.

    Attributes:
        title: One line for people.
        series: Corrupts a share of one channel of a series; made by `sacm.data.faults.at_points`,
            `on_segments` or `on_channel`.
        windows: `(x, severity, generator)`: corrupts z-scored windows `[B, L, C]` by severities
            `[B]`.
        values: `(x, level, seed)`: changes every value of an array `[..., C]`.
        rows: `(x, ratio, seed)`: corrupts a share of the rows of telemetry `[T, C]`.
        labels: `(codes, classes, ratio, random)`: wrong labels instead of class numbers `[N]`.
        parts: The kinds that a mixture consists of; each gets an equal share of the ratio.
        largest: The largest level of `values`.
    """

    title: str
    series: SeriesFault | None = None
    windows: WindowFault | None = None
    values: ValueFault | None = None
    rows: ValueFault | None = None
    labels: LabelFault | None = None
    parts: tuple[str, ...] = ()
    largest: float = np.inf


CORRUPTIONS: Registry[Fault] = registry.CORRUPTIONS


class CorruptedSeries(NamedTuple):
    """Values [T, C], which of them were corrupted (bool), and their kinds (uint8).

    Kinds are positions in `series_kinds()`.
    """

    values: np.ndarray
    corrupted: np.ndarray
    kinds: np.ndarray


def register(name: str, *, largest: float = np.inf) -> Callable[[Function], Function]:
    """Give a decorator that makes a corruption of every value available to `sacm.data.corrupt`.

    Faults of other forms are registered as `CORRUPTIONS.register(name)(Fault(...))`.

    Args:
        name: The kind to ask for.
        largest: The largest level it takes; the smallest is 0, which changes nothing.

    Returns:
        A decorator for a function `(x, level, seed)`: a float64 array `[..., C]`, the level and
        the seed of its random numbers, to an array of the same shape. It must not change `x`.

    Raises:
        ArgumentError: If the name is taken.

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


def names(group: str | None = None) -> list[str]:
    """List the faults, or those of a group; plug-ins included."""
    return CORRUPTIONS.names(group)


def series_kinds() -> tuple[str, ...]:
    """Names of the codes in `CorruptedSeries.kinds`; the first is an untouched value."""
    return (ORIGINAL, *(name for name, fault in CORRUPTIONS.items() if fault.series is not None))


def corrupt(
    x: Corruptible,
    kind: str = "gaussian",
    level: float = 0.3,
    *,
    seed: int = 0,
    channels: Sequence[int] | None = None,
    targets: Targets = "clean",
) -> Corruptible:
    """Corrupt values, or the inputs of a data set.

    Args:
        x: An array or tensor whose last axis are channels (or `[T]`), or a `ForecastingData`.
        kind: gaussian and student_t (2.5 degrees of freedom) add noise of `level` times the spread
            of each channel; missing sets a share `level` of the entries to 0; layered is the
            mixture of Synth-12 along the first axis: noise and spikes whose strength changes in
            regimes, and short gaps. Every other fault corrupts a share `level` of a series, or
            windows `[B, L, C]` of z-scores with severity `level`.
        level: How much.
        seed: Of the random draw.
        channels: Positions of the channels to corrupt; all if None.
        targets: What a `ForecastingData` is to forecast: its clean values ("clean"), or the
            corrupted ones ("same"). Values that are gone are interpolated and not observed.

    Returns:
        The same kind of object, of the same shape.

    Raises:
        ArgumentError: There is no such fault, or it does not fit the data or the level.

    Example:
        >>> float((corrupt(np.ones((50, 2)), "missing", 0.3) == 0).mean()) > 0.2
        True
    """
    if isinstance(x, ForecastingData):
        values = corrupt(x.values, kind, level, seed=seed, channels=channels)
        return replace(x, **_changed_fields(x, values, targets))
    if isinstance(x, Tensor):
        array: Any = corrupt(as_numpy(x), kind, level, seed=seed, channels=channels)
        tensor = torch.from_numpy(array).to(x.device)
        return tensor.to(x.dtype) if x.is_floating_point() else tensor
    fault = CORRUPTIONS.get(kind)
    _check_array(x)
    largest = fault.largest if fault.values else 1.0
    if not 0 <= level <= largest:
        raise ArgumentError(f"The level of {kind} must be in 0 … {largest:g}, got {level}.")
    array = np.asarray(x, dtype=np.float64)
    rows = array if array.ndim > 1 else array[:, None]
    result = _corrupt_rows(rows, kind, fault, level, seed)
    if channels is not None:
        chosen = np.isin(np.arange(rows.shape[-1]), choose_channels(channels, rows.shape[-1]))
        result = np.where(chosen, result, rows)
    return result.reshape(array.shape).astype(x.dtype if x.dtype.kind == "f" else np.float64)


def _corrupt_rows(x: np.ndarray, kind: str, fault: Fault, level: float, seed: int) -> np.ndarray:
    """Corrupt an array `[..., C]` by the form of the fault that fits it."""
    if fault.values is not None:
        return np.asarray(fault.values(x, level, seed))
    if fault.labels is not None:
        raise ArgumentError(f"{kind} corrupts labels: use sacm.data.corrupt_training.")
    if x.ndim == 2:
        return corrupt_series(x, kind, level, seed=seed).values
    if x.ndim == 3:
        return corrupt_windows(torch.from_numpy(x), kind, level, seed=seed).numpy()
    raise ArgumentError(f"{kind} needs a series [T], [T, C] or windows [B, L, C].")


def corrupt_series(
    values: np.ndarray,
    kind: str,
    ratio: float,
    *,
    severity: float = 1.0,
    channels: Sequence[int] | None = None,
    seed: int = 0,
) -> CorruptedSeries:
    """Corrupt a share of the values of every channel of a series, and say which.

    Args:
        values: Floating-point numbers `[T, C]`.
        kind: A fault that is defined for series, or a mixture, whose kinds share the ratio.
        ratio: Share of the values to corrupt, between 0 and 1.
        severity: Factor of all sizes.
        channels: Positions of the channels to corrupt; all if None.
        seed: Of positions and sizes.

    Returns:
        Values in the precision of the input (NaN where a value was removed), mask and kinds. A
        value counts as corrupted even if the fault happens to leave it as it was.

    Raises:
        ArgumentError: If an argument is none of these.

    Example:
        >>> rows = np.random.default_rng(0).normal(size=(500, 2))
        >>> values, corrupted, kinds = corrupt_series(rows, "mix", 0.3, seed=1)
    """
    values = np.asarray(values)
    _check_series(values, ratio, severity)
    parts = series_parts(kind)
    random = np.random.default_rng(seed)
    deviation, centre = np.nanstd(values, axis=0), np.nanmean(values, axis=0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    result, kinds = values.astype(np.float64), np.zeros(values.shape, dtype=np.uint8)
    codes = {name: code for code, name in enumerate(series_kinds())}
    for c in choose_channels(channels, values.shape[1]):
        size = severity * deviation[c]
        channel = Channel(result[:, c], kinds[:, c], centre[c], size, len(parts) > 1)
        for name, fault in parts.items():
            fault(channel, ratio / len(parts), codes[name], random)
    hit = kinds > 0
    return CorruptedSeries(np.where(hit, result.astype(values.dtype), values), hit, kinds)


def series_parts(kind: str) -> dict[str, SeriesFault]:
    """Give the faults of a kind by name: itself, or those of a mixture.

    Raises:
        ArgumentError: If there is no such fault, or it is not defined for series.
    """
    kinds = CORRUPTIONS.get(kind).parts or (CORRUPTIONS.spelling(kind),)
    parts = {name: CORRUPTIONS.get(name).series for name in kinds}
    defined = {name: series for name, series in parts.items() if series is not None}
    if len(defined) < len(parts):
        usable = ", ".join(n for n, fault in CORRUPTIONS.items() if fault.series or fault.parts)
        raise ArgumentError(f"the fault {kind!r} is not defined for series: use {usable}.")
    return defined


def corrupt_windows(
    x: Tensor,
    kind: str,
    severity: Tensor | float,
    *,
    channels: Sequence[int] | None = None,
    seed: int = 0,
) -> Tensor:
    """Put one fault into each window.

    Args:
        x: Windows of z-scores `[B, L, C]`.
        kind: A fault. One that is defined for series only corrupts a share `severity` of the steps
            of every channel.
        severity: `[B]` or one number, between 0 and 1.
        channels: Positions of the channels that may be corrupted; all if None.
        seed: Of the channels, positions and noise.

    Returns:
        Corrupted windows; `x` stays unchanged.

    Raises:
        ArgumentError: If an argument is none of these.

    Example:
        >>> x = torch.randn(4, 96, 3)
        >>> torch.equal(corrupt_windows(x, "stuck", 0.5, seed=1), x)
        False
    """
    fault = CORRUPTIONS.get(kind)
    if x.dim() != 3 or x.shape[1] < 2:
        raise ArgumentError(f"Windows must be [B, L, C] with L of 2 or more, got {list(x.shape)}.")
    s = torch.as_tensor(severity, dtype=torch.float32).expand(len(x)).cpu()
    if not bool(((s >= 0) & (s <= 1)).all()):
        raise ArgumentError("severity must lie between 0 and 1.")
    original = x.detach().float().cpu()
    if fault.windows is not None:
        result = fault.windows(original, s, Generator().manual_seed(seed))
    else:
        result = _corrupt_each(original, kind, s, seed)
    if channels is not None:
        chosen = torch.zeros(x.shape[2], dtype=torch.bool)
        chosen[choose_channels(channels, x.shape[2])] = True
        result = torch.where(chosen, result, original)
    return result.to(device=x.device, dtype=x.dtype)


def _corrupt_each(x: Tensor, kind: str, severity: Tensor, seed: int) -> Tensor:
    """Treat every channel of every window as a short series whose deviation is 1."""
    parts = series_parts(kind)
    random = np.random.default_rng(seed)
    result = x.double().numpy().copy()
    for window, ratio in zip(result, severity.tolist(), strict=True):
        for c in range(window.shape[1]):
            kinds = np.zeros(len(window), np.uint8)
            channel = Channel(window[:, c], kinds, 0.0, 1.0, mixed=len(parts) > 1)
            for code, fault in enumerate(parts.values(), 1):
                fault(channel, ratio / len(parts), code, random)
    return torch.from_numpy(result).float()


@dataclass(frozen=True)
class Contamination:
    """Which fault corrupts which share of the training and validation data: `mix(0.3)`."""

    kind: str
    ratio: float = _USUAL_RATIO

    def __str__(self) -> str:
        return f"{self.kind}({self.ratio:g})"

    @classmethod
    def parse(cls, text: str) -> Contamination:
        """Read `kind(ratio)`; without a ratio it is 0.3.

        Raises:
            ArgumentError: There is no such fault, or the ratio is no share.

        Example:
            >>> str(Contamination.parse("MIX(.1)"))
            'mix(0.1)'
        """
        name, bracket, rest = text.strip().partition("(")
        kind = CORRUPTIONS.spelling(name.strip())
        inside = rest.strip().removesuffix(")").rpartition("=")[2] if bracket else _USUAL_RATIO
        try:
            ratio = float(inside)
        except ValueError:
            ratio = -1.0
        if not 0 < ratio <= 1 or (bracket and not rest.strip().endswith(")")):
            raise ArgumentError(
                f"contamination {text!r}: write a fault and a share in (0, 1], such as mix(0.3)."
            )
        return cls(kind, ratio)


def corrupt_training(data: AnyData, contamination: str, *, seed: int = 0) -> AnyData:
    """Corrupt the training and validation part of a data set; the test part stays unchanged.

    Forecasting: rows, so inputs and targets; `broken` says which values. Classification: labels.
    Anomaly detection: training rows.

    Args:
        data: One of the three data sets.
        contamination: A fault and the share of values, labels or rows to corrupt, such as
            "mix(0.3)"; an empty text changes nothing.
        seed: Of positions and sizes.

    Raises:
        ArgumentError: The fault does not fit the task.

    Example:
        >>> import sacm
        >>> worse = corrupt_training(sacm.data.load("Synth-12"), "stuck(0.2)", seed=1)
        >>> bool(worse.broken[worse.splits.train.start : worse.splits.train.stop].any())
        True
    """
    if not contamination:
        return data
    wanted = Contamination.parse(contamination)
    kind, ratio = wanted.kind, wanted.ratio
    if isinstance(data, ClassificationData):
        return replace(data, y_train=_flip_labels(data, kind, ratio, seed))
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


def _flip_labels(data: ClassificationData, kind: str, ratio: float, seed: int) -> np.ndarray:
    """Training labels `[N]`, some of them wrong."""
    flip = CORRUPTIONS.get(kind).labels
    if flip is None:
        usable = ", ".join(name for name, fault in CORRUPTIONS.items() if fault.labels is not None)
        raise ArgumentError(f"{kind} does not corrupt labels of {data.name}: use {usable}.")
    codes = data.encode(data.y_train)
    wrong = flip(codes, len(data.classes), ratio, np.random.default_rng(seed))
    return np.asarray(data.classes)[wrong].astype(data.y_train.dtype)


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


def choose_channels(channels: Sequence[int] | None, count: int) -> list[int]:
    """Check positions of channels.

    Raises:
        ArgumentError: If there is no such channel.
    """
    chosen = list(range(count)) if channels is None else [int(c) for c in channels]
    for c in chosen:
        if not 0 <= c < count:
            raise ArgumentError(f"there is no channel {c}: the data have {count}, from 0 on.")
    return chosen


def _check_array(x: object) -> None:
    """Refuse what has no channels of numbers."""
    if not isinstance(x, np.ndarray):
        raise ArgumentError(
            f"corrupt takes an array, a tensor or ForecastingData, not {type(x).__name__}."
        )
    if x.dtype.kind not in "fiub" or x.ndim == 0:
        raise ArgumentError(
            f"corrupt needs numbers [T] or [..., C], got {x.dtype} of shape {list(x.shape)}."
        )


def _check_series(values: np.ndarray, ratio: float, severity: float) -> None:
    """Refuse what has no channels of numbers, and shares and sizes that are none."""
    if values.ndim != 2 or values.dtype.kind != "f" or len(values) < 2:
        raise ArgumentError(
            f"A series must be floating-point numbers [T, C] with T of 2 or more, got "
            f"{values.dtype} of shape {list(values.shape)}."
        )
    if not 0 <= ratio <= 1:
        raise ArgumentError(f"ratio must lie between 0 and 1, got {ratio}.")
    if not 0 < severity < np.inf:
        raise ArgumentError(f"severity must be a positive number, got {severity}.")


def add_layers(x: np.ndarray, level: float, seed: int) -> np.ndarray:
    """Add the mixture of Synth-12, scaled by the spread of each channel."""
    if x.ndim != 2 or len(x) < _SHORTEST_LAYERED:
        raise ArgumentError(
            f"layered needs a series [T] or [T, C] of at least {_SHORTEST_LAYERED} steps, got "
            f"{list(x.shape)}."
        )
    spread = faults.spread_of(x)
    scaled = x / spread
    columns = [
        add_layered_noise(scaled[:, c], level, seed + SEED_STEP * c) for c in range(x.shape[1])
    ]
    return np.asarray(np.stack(columns, axis=1) * spread)


_BUILT_IN = {
    "missing": Fault(
        "segments are gone",
        series=on_segments(faults.put(np.nan)),
        values=faults.blank_entries,
        largest=1.0,
    ),
    "zero": Fault("segments read 0", series=on_segments(faults.put(0.0))),
    "stuck": Fault("segments hold their first value", series=on_segments(faults.hold_first)),
    "points": Fault(
        "single steps get normal errors of 3 deviations", series=at_points(faults.add_points)
    ),
    "burst": Fault("segments get noise of 1.5 deviations", series=on_segments(faults.add_burst)),
    "mix": Fault(f"{', '.join(faults.MIX)} in equal shares", parts=faults.MIX),
    "gaussian": Fault("normal noise in every value", values=faults.add_gaussian_noise),
    "student_t": Fault("noise with heavy tails in every value", values=faults.add_student_t),
    "layered": Fault("the mixture of Synth-12 in every value", values=add_layers),
}
for _name, _fault in _BUILT_IN.items():
    CORRUPTIONS.register(_name)(_fault)
