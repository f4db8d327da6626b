"""Several strategies in one run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from sacm.backbones.base import Backbone
from sacm.data.datasets import fingerprint
from sacm.strategies.base import Prepared, Step, Strategy, StrategyRun, TrainingContext, multiply

# What strategies made of data sets before: runs of one experiment differ in backbone or in one
# part of their strategy, and fitting a guard takes longer than many of them train.
_prepared: dict[tuple[str, str, int], Prepared] = {}
_MOST_PREPARED = 6


def prepare_once(strategy: Strategy, data: Any, *, window: int) -> Prepared:
    """What `strategy.prepare` returns, with its seconds; equal options and data prepare once."""
    options = list(vars(strategy).values())
    # A fitted strategy holds more than options; a combined one remembers each of its parts.
    plain = all(isinstance(option, str | int | float) for option in options)
    if type(strategy).prepare is Strategy.prepare or not plain:
        return strategy.prepare(data, window=window)
    key = (f"{strategy.name}{options}", fingerprint(data), window)
    if key not in _prepared:
        if len(_prepared) == _MOST_PREPARED:
            del _prepared[next(iter(_prepared))]  # the oldest
        started = time.perf_counter()
        prepared = strategy.prepare(data, window=window)
        _prepared[key] = prepared._replace(seconds=time.perf_counter() - started)
    return _prepared[key]


@dataclass(frozen=True, eq=False)
class Combined(Strategy):
    """Several strategies at once, in the order given; none of them leaves the data as they are."""

    name = "combined"
    parts: tuple[Strategy, ...]

    def check_task(self, task: str) -> None:
        for part in self.parts:
            part.check_task(task)

    def prepare(self, data: Any, *, window: int) -> Prepared:
        """Prepare with each that has a way of its own, then fill the gaps that are left."""
        parts, notes, seconds = list(self.parts), list[str](), 0.0
        for place, part in enumerate(self.parts):
            if type(part).prepare is not Strategy.prepare:
                prepared = prepare_once(part, data, window=window)
                data, parts[place] = prepared.data, prepared.strategy
                notes += prepared.notes
                seconds += prepared.seconds
        filled = super().prepare(data, window=window)
        return Prepared(filled.data, Combined(tuple(parts)), (*notes, *filled.notes), seconds)

    def inputs(self, x: Tensor, *, training: bool = False) -> Tensor:
        for part in self.parts:
            x = part.inputs(x, training=training)
        return x

    def build(self, make: Callable[[], Backbone]) -> Backbone:
        for part in self.parts:
            make = partial(part.build, make)
        return make()

    def begin(self, model: nn.Module, context: TrainingContext) -> StrategyRun:
        return CombinedRun(part.begin(model, context) for part in self.parts)

    def flags(self, x: Tensor) -> Tensor | None:
        return _first(part.flags(x) for part in self.parts)

    def save(self, folder: Path) -> None:
        for part in self.parts:
            part.save(folder)

    def load(self, folder: Path) -> Strategy:
        return Combined(tuple(part.load(folder) for part in self.parts))


class CombinedRun(StrategyRun):
    """Several strategies at work; they do not know of each other."""

    def __init__(self, parts: Iterable[StrategyRun]) -> None:
        self.parts = list(parts)
        self.scalars = [scalar for part in self.parts for scalar in part.scalars]

    @property
    def rates(self) -> Tensor | None:  # type: ignore[override]  # an attribute of the base
        return _first(part.rates for part in self.parts)

    def begin_epoch(self, epoch: int) -> None:
        for part in self.parts:
            part.begin_epoch(epoch)

    def weights(self, batch: Any, prediction: Tensor) -> Tensor | None:
        return reduce(multiply, (part.weights(batch, prediction) for part in self.parts))

    def loss(self, step: Step) -> Tensor | None:
        return _first(part.loss(step) for part in self.parts)

    def after_step(self) -> None:
        for part in self.parts:
            part.after_step()

    def state_dict(self) -> dict[str, Any]:
        return {str(i): part.state_dict() for i, part in enumerate(self.parts)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for i, part in enumerate(self.parts):
            part.load_state_dict(state[str(i)])


def _first(values: Iterable[Tensor | None]) -> Tensor | None:
    """The first that is not None."""
    return next((value for value in values if value is not None), None)
