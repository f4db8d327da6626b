"""What a strategy makes of a data set before training, kept for the next run of the process.

Runs of one experiment differ in backbone or in one part of their strategy; fitting a guard takes
longer than many of them train.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

from sacm.data.datasets import AnyData
from sacm.data.fingerprint import fingerprint
from sacm.strategies.base import Prepared, Strategy
from sacm.strategies.registry import Combined, parse

_MOST = 6  # data sets that are kept
Key = tuple[str, str, int]


class Timed(NamedTuple):
    """Prepared data, and the seconds that it took to make them, now or before."""

    prepared: Prepared
    seconds: float


_kept: OrderedDict[Key, Timed] = OrderedDict()


def prepare_once(strategy: str, data: AnyData, *, window: int) -> Timed:
    """Prepare data by a strategy, or by what the same strategy made of the same data before.

    Args:
        strategy: The strategy by name; each part of a combined one is kept by itself.
        data: One of the three data sets.
        window: Steps of an input window.
    """
    chosen = parse(strategy)
    if not isinstance(chosen, Combined):
        return _prepare(chosen, data, window)
    parts: list[Strategy] = []
    notes: list[str] = []
    spent = 0.0
    for part in chosen.parts:
        (data, fitted, said), seconds = _prepare(part, data, window)
        parts.append(fitted)
        notes += said
        spent += seconds
    return Timed(Prepared(data, Combined(parts), tuple(notes)), spent)


def _prepare(part: Strategy, data: AnyData, window: int) -> Timed:
    if type(part).prepare is Strategy.prepare or not is_dataclass(part):
        return Timed(part.prepare(data, window=window), 0.0)
    key = _key(part, data, window)
    if key not in _kept:
        started = time.perf_counter()
        prepared = part.prepare(data, window=window)
        _kept[key] = Timed(prepared, time.perf_counter() - started)
        while len(_kept) > _MOST:
            _kept.popitem(last=False)
    _kept.move_to_end(key)
    return _kept[key]


def _key(part: Any, data: AnyData, window: int) -> Key:
    options = [(each.name, getattr(part, each.name)) for each in fields(part)]
    return f"{part.name}{options}", fingerprint(data), window
