"""Learn from repaired data, and repair what is predicted from."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from sacm.data.datasets import ForecastingData
from sacm.data.scaling import fit_scaler, scale_training_rows
from sacm.errors import ArgumentError
from sacm.files import read_metadata, read_weights, write_weights
from sacm.quality.config import Fixed
from sacm.quality.guard import Guard
from sacm.quality.windows import WindowGuard
from sacm.strategies.base import Prepared, Strategy
from sacm.strategies.registry import join, parse, parts_of, register, spell
from sacm.types import TaskName

_GUARD, _WINDOWS = "guard.safetensors", "window_guard.safetensors"


@register("guard")
@dataclass(frozen=True)
class GuardStrategy(Strategy):
    """Find broken values and repair them before training; repair inputs at prediction as well.

    repair: What is repaired: broken values (fail), unusual ones too (all), or nothing (none).
    rules: A file with what you know about the channels, as `sacm rules` writes one.
    keep: Events that stay as measured: a file of `sacm quality --flags`, column keep filled in.
    false_events: Expected false events in 10,000 normal values; a higher number finds more.
    """

    tasks: ClassVar[tuple[TaskName, ...]] = ("forecasting", "anomaly")

    repair: Literal["fail", "all", "none"] = "fail"
    rules: str = ""
    keep: str = ""
    false_events: float = 1.0

    def __post_init__(self) -> None:
        if not self.false_events > 0:
            raise ArgumentError(f"guard takes false_events above 0, got {self.false_events}.")

    def check_task(self, task: str) -> None:
        if task == "classification":
            raise ArgumentError("guard judges series, not cases: use labels, or no strategy.")

    def prepare(self, data: Any, *, window: int) -> Prepared:
        """Fit a guard on the training part and repair what is learnt from."""
        windows = isinstance(data, ForecastingData) and window >= Fixed.shortest_window
        options = self.rules or None, self.false_events, window if windows else None, self.repair
        guard = Guard(*options, self.keep or None).fit(data)
        repaired, share = repair_for_training(data, guard)
        acts = windows and self.repair != "none"
        module = scaled_module(guard, repaired, window) if acts else None
        filled, _, notes, *_ = super().prepare(repaired, window=window)
        if share:
            notes = (f"The guard repaired {share:.2%} of the training values.", *notes)
        return Prepared(filled, FittedGuard(**vars(self), source=guard, module=module), notes)

    def load(self, folder: Path) -> Strategy:
        windows = folder / _WINDOWS
        module = WindowGuard(read_weights(windows)).eval() if windows.exists() else None
        path = folder / _GUARD
        content = read_weights(path), read_metadata(path)
        return FittedGuard(**vars(self), source=partial(Guard.load, path, content), module=module)


@dataclass(frozen=True)
class FittedGuard(GuardStrategy):
    """The strategy with what it learnt from training rows."""

    source: Guard | Callable[[], Guard] = field(kw_only=True)  # the guard of tables, or its reader
    module: WindowGuard | None = None  # of z-scored windows of forecasting that are long enough

    @cached_property
    def guard(self) -> Guard:
        """The guard of tables, which predictions without rules do not need."""
        return self.source if isinstance(self.source, Guard) else self.source()

    def prepare(self, data: Any, *, window: int) -> Prepared:
        """Obey rules; series are repaired window by window, telemetry never."""
        return super(GuardStrategy, self).prepare(self.obey(data), window=window)

    def obey(self, data: Any) -> Any:
        """Series in which what breaks a rule counts as missing."""
        if not self.rules or not isinstance(data, ForecastingData):
            return data
        broken = self.guard.breaks_rules(data)
        return replace(data, values=np.where(broken, np.float32(np.nan), data.values))

    def with_files(self, rules: Path | None, keep: Path | None) -> FittedGuard:
        """The same guard with other rules; a channel with an event to keep is left alone."""
        guard = self.guard.with_rules(rules, keep)
        alone = [r.leave_alone or bool(keep and r.keep) for r in guard.channel_rules_]
        module = self.module and self.module.leave_alone(torch.tensor(alone))
        return replace(self, rules=str(rules or self.rules), source=guard, module=module)

    def inputs(self, x: Tensor, *, training: bool = False) -> Tensor:
        """Windows `[B, L, C]` with what is broken in them repaired; training rows are already."""
        return x if training or self.module is None else self._in_blocks(x)[0]

    def flags(self, x: Tensor) -> Tensor | None:
        """Kinds `[B, L, C]` (uint8) of what `inputs` repairs in windows `[B, L, C]`."""
        return None if self.module is None else self._in_blocks(x)[1]

    def _in_blocks(self, x: Tensor) -> list[Tensor]:
        """Repairs and their kinds `[B, L, C]`, block by block where windows are longer."""
        assert self.module is not None
        module, parts = self.module.to(x.device), list[tuple[Tensor, Tensor]]()
        for stop in range(x.shape[1], 0, -module.length):
            start = max(0, stop - module.length)
            repaired, flags, grades = module.inspect(x[:, start : start + module.length])
            kept = slice(stop - start)
            parts.insert(0, (repaired[:, kept], (flags * (grades > 1))[:, kept]))
        return [torch.cat(tensors, 1) for tensors in zip(*parts, strict=True)]

    def save(self, folder: Path) -> None:
        self.guard.save(folder / _GUARD)
        if self.module is not None:
            write_weights(folder / _WINDOWS, self.module.state_dict())


def repair_for_training(data: Any, guard: Guard) -> tuple[Any, float]:
    """A data set repaired by a guard of its training part, and the share that was repaired.

    Anomaly detection: training rows alone. Forecasting: validation rows too, each by themselves,
    with targets weighed by their reliability; of test rows what breaks a rule is missing.
    """
    quality = guard.inspect(data)
    if not isinstance(data, ForecastingData):
        return quality.repaired, float(quality.changed.mean())
    learnt = np.arange(len(data.values))[:, None] < data.splits.val.stop
    changed, ruled = quality.changed & learnt, (quality.rules > 0) & ~learnt
    values = np.where(changed, quality.values.astype(data.values.dtype), data.values)
    values[ruled] = np.nan
    weights = np.where(learnt, quality.reliability, 1.0).astype(np.float32)
    weights[ruled | ~np.isfinite(quality.recording.values)] = 0.0
    observed = weights if (weights < 1).any() else data.observed
    share = float(changed[: data.splits.val.stop].mean())
    return replace(data, values=values, observed=observed), share


def scaled_module(guard: Guard, data: Any, window: int) -> WindowGuard:
    """The guard of windows that the task's scaler has changed; training rows are repaired."""
    ranges = list(data.ranges("train"))
    segments = [rows for rows in ranges if len(rows) >= window] or ranges
    scaler = fit_scaler(data, segments)
    if not scaler.series:
        return guard.module().rescaled(scaler.mean, scaler.std)
    scaled = scale_training_rows(data, segments)  # every series by itself
    values = np.concatenate([scaled, data.values[len(scaled) :]])
    scaled_data = replace(data, values=values, observed=None)
    return Guard(None, guard.false_events, window).fit(scaled_data).module()


def mark_broken_rules(strategy: Strategy, data: Any) -> Any:
    """Series in which what breaks a rule of the strategy's guard counts as missing."""
    for part in parts_of(strategy):
        data = part.obey(data) if isinstance(part, FittedGuard) else data
    return data


def files_of(strategy: str) -> dict[str, str]:
    """Files of rules and of kept events of a strategy's guard, by option."""
    guards = [part for part in parts_of(parse(strategy)) if isinstance(part, GuardStrategy)]
    return {n: getattr(g, n) for g in guards[:1] for n in ("rules", "keep") if getattr(g, n)}


def share_files(strategies: Sequence[str], files: Mapping[str, Any]) -> list[str]:
    """Strategies whose guards have these files of rules and kept events.

    Example:
        >>> share_files(["raw", "guard+sacm"], {"rules": "my.yaml"})
        ['raw', 'guard(rules=my.yaml)+sacm']
    """
    return [
        spell(*(replace(p, **files) if isinstance(p, GuardStrategy) else p for p in parts_of(each)))
        for each in map(parse, strategies)
    ]


def with_files(strategy: str, rules: Path | None, keep: Path | None) -> str:
    """A strategy whose guard obeys a rules file and keeps events."""
    files = {n: str(path) for n, path in (("rules", rules), ("keep", keep)) if path is not None}
    for name, file in files.items():
        if re.search(r"[(),+=]", file):
            raise ArgumentError(f"--{name} {file}: give the file a name without ( ) , + or =.")
    (changed,) = share_files([strategy], files)
    if files and not files_of(changed):
        raise ArgumentError(f"--rules and --keep are for the guard, which {strategy} has not.")
    return changed


def obeying(predictor: Any, rules: Path | None, keep: Path | None) -> Any:
    """A loaded network whose guard has other rules, or further events to keep."""
    parts = parts_of(predictor.strategy)
    if not any(isinstance(part, FittedGuard) for part in parts):
        raise ArgumentError("--rules and --keep are for the guard, which this run has not.")
    changed = [p.with_files(rules, keep) if isinstance(p, FittedGuard) else p for p in parts]
    return replace(predictor, strategy=join(changed))
