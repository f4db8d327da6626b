"""Recognise dropout classes of other libraries by what they do.

`DropPath`, `StochasticDepth`, `LockedDropout` and their relatives have no common base class. What
they share is their effect: in training they multiply the activation by a random mask of 0 and
`1 / (1 - p)`, with one mask entry for a whole row or feature map; in evaluation they change
nothing. That is tried out here on a tensor of ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from sacm.inject.probe.restore import restored_afterwards, seed_all_generators

_SIZE = 16  # of every dimension: chance makes 16 rows alike once in 32768 times
_RATE, _SEEDS = 0.5, 16
_NAMES = ("drop", "stochasticdepth")


def is_named_like_dropout(module: nn.Module) -> bool:
    """True for layers without children or parameters whose class name speaks of dropping."""
    name = type(module).__name__.lower()
    if not any(part in name for part in _NAMES):
        return False
    return next(module.parameters(), None) is None and not any(module.children())


def find_shared_dims(
    module: nn.Module, dims: int, forward: Callable[[Tensor], Any] | None = None
) -> tuple[int, ...] | None:
    """Return the dimensions along which the module draws one mask entry for all.

    Args:
        module: A dropout layer of any class.
        dims: Number of dimensions of its input.
        forward: Its own forward, if a stand-in has taken the place of that.

    Returns:
        For `DropPath` and an input `[B, L, D]` it is ``(1, 2)``. None if the module is no inverted
        dropout: it does not drop, does not rescale, or is not idle in evaluation.
    """
    ones = torch.ones((_SIZE,) * dims)
    expected = {0.0, 1 / (1 - _RATE)}
    for name in _rate_names(module):
        seen: set[float] = set()
        for seed in range(_SEEDS):  # one is enough, unless all entries share a single decision
            out = _run(module, name, ones, seed, forward or module.forward)
            seen |= set() if out is None else set(out.unique().tolist())
            if out is None or not seen <= expected:
                break
            if seen == expected:
                return tuple(d for d in range(dims) if bool((out == out.narrow(d, 0, 1)).all()))
    return None


def _rate_names(module: nn.Module) -> Iterator[str]:
    """Yield the attributes that may hold the rate: numbers from 0 to below 1, or None."""
    for name, value in vars(module).items():
        number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1
        if not name.startswith("_") and (number or value is None):
            yield name


def _run(
    module: nn.Module, name: str, ones: Tensor, seed: int, forward: Callable[[Tensor], Any]
) -> Tensor | None:
    """Return the output in training at a rate of one half; None if evaluation is not idle."""
    with restored_afterwards(module):
        seed_all_generators(seed)
        vars(module)[name] = _RATE
        try:
            module.training = False
            idle = forward(ones.clone())
            module.training = True
            out = forward(ones.clone())
        except Exception:  # whatever a class raises that expects something else
            return None
    fits = isinstance(out, Tensor) and out.shape == ones.shape
    return out if fits and isinstance(idle, Tensor) and torch.equal(idle, ones) else None
