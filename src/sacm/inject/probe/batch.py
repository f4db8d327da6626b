"""A small batch for the probe, cut from the arguments of a call."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten

from sacm.errors import ArgumentError
from sacm.inject.state import Call
from sacm.inject.window_argument import WindowArgument

WINDOWS = 3  # few enough to be quick, odd so that fewer shapes divide by accident
_MOST_WAYS = 32


def cut_batch(call: Call, window: WindowArgument) -> Iterator[Call]:
    """The first windows of a batch (repeated if there are fewer), with all that goes with them.

    An argument as long as the batch usually goes with it; but a mask `[L, L]` does not, though L
    may be the batch size. So there are several ways to cut, the usual one first.
    """
    batch = window(call.args, call.kwargs).shape[0]
    if batch == 0:
        raise ArgumentError(f"{window.model_name}: an empty batch cannot be probed.")
    leaves, structure = tree_flatten((call.args, call.kwargs))
    long = [i for i, t in enumerate(leaves) if isinstance(t, Tensor) and t.shape[:1] == (batch,)]
    own = [i for i in long if _is_window(leaves[i], call, window)]
    others = [i for i in long if own and i not in own]
    subsets = itertools.chain.from_iterable(
        itertools.combinations(others, count) for count in range(len(others) + 1)
    )
    for whole in itertools.islice(subsets, _MOST_WAYS):
        taken = [_take(t, batch, cut=i in long and i not in whole) for i, t in enumerate(leaves)]
        args, kwargs = tree_unflatten(taken, structure)
        few = Call(call.model, args, kwargs)
        for tensor in find_window_tensors(few, window):
            tensor.nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)  # nothing moves in a window of NaN
        yield few


def find_window_tensors(few: Call, window: WindowArgument) -> list[Tensor]:
    """The window among the arguments of a call, or what a user's function computes it from."""
    target = window.raw(few.args, few.kwargs)
    leaves = [t for t in tree_flatten((few.args, few.kwargs))[0] if isinstance(t, Tensor)]
    own = any(_shares_memory(t, target) for t in leaves)
    found = [target] if own else [t for t in leaves if t.dim() and t.shape[0] == WINDOWS]
    return [tensor for tensor in found if tensor.is_floating_point()]


def _is_window(leaf: Tensor, call: Call, window: WindowArgument) -> bool:
    return _shares_memory(leaf, window.raw(call.args, call.kwargs))


def _shares_memory(one: Tensor, other: Tensor) -> bool:
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


def _take(leaf: Any, batch: int, *, cut: bool) -> Any:
    if not isinstance(leaf, Tensor):
        return leaf
    if not cut:
        return leaf.detach().clone()
    return leaf.detach().index_select(0, torch.arange(WINDOWS, device=leaf.device) % batch)
